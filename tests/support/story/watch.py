"""A source as its user sees it.

Status, documents, and the driver's own lines about its micro-batches.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import report as report_document
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.documents.storage import Blob, Names, unpack
from testbed.waiting import wait_until

Kubectl = Callable[..., str]
"""Runs kubectl with arguments and returns what it printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A finished micro-batch, as the driver logged it.

    Attributes:
        number: of the micro-batch.
        epoch: of the assignment that it ran with.
        parallelism: number of readers that it ran with.
        rows: that it read.
        began: when it was triggered, seconds since the epoch.
        planned: when its readers began to read.
        ended: when it was committed.
    """

    number: int
    epoch: int
    parallelism: int
    rows: int
    began: float
    planned: float
    ended: float


_BEFORE_READING: Final = ("latestOffset", "walCommit", "getBatch", "queryPlanning")


class SourceView:
    """One BalancedSource in a cluster."""

    def __init__(self, kubectl: Kubectl, name: str, namespace: str = "default") -> None:
        self._kubectl = kubectl
        self.name = name
        self._namespace = namespace

    def get(self) -> dict[str, Any]:
        """The resource."""
        return self._json("bsrc", self.name)

    @property
    def status(self) -> dict[str, Any]:
        """Its status; empty before the operator has seen it."""
        return dict(self.get().get("status", {}))

    def condition(self, kind: str) -> dict[str, Any]:
        """One condition; empty if it is not there."""
        return next((c for c in self.status.get("conditions", []) if c["type"] == kind), {})

    @property
    def assignment(self) -> Assignment:
        """What the operator has published."""
        return assignment_document.decode(self._document(Names.of(self.name).assignment))

    @property
    def report(self) -> HostReport:
        """What the driver has reported."""
        return report_document.decode(self._document(Names.of(self.name).readers))

    def patch(self, spec: Mapping[str, Any]) -> None:
        """``kubectl patch`` with a merge patch of the spec."""
        self._kubectl(
            "patch",
            f"bsrc/{self.name}",
            "-n",
            self._namespace,
            "--type",
            "merge",
            "-p",
            json.dumps({"spec": spec}),
        )

    def wait_adopted(
        self, *, parallelism: int, timeout: float, splits: int | None = None
    ) -> dict[str, Any]:
        """Wait until the application reads with so many readers (and splits), all assigned."""

        def adopted() -> dict[str, Any] | None:
            status = self.status
            is_done = (
                status.get("readers") == parallelism
                and status.get("pendingSplits") == 0
                and status.get("acknowledgedEpoch") == status.get("epoch")
                and splits in (None, status.get("splits"))
            )
            return status if is_done else None

        what = f"{self.name} to read with {parallelism} readers" + (
            f" and {splits} splits" if splits else ""
        )
        return wait_until(adopted, timeout, what, interval=0.2) or {}

    def _document(self, name: str) -> str:
        found = self._json("configmap", name)
        return unpack(Blob(data=found.get("data") or {}, binary=found.get("binaryData") or {}))

    def _json(self, kind: str, name: str) -> dict[str, Any]:
        return dict(
            json.loads(self._kubectl("get", kind, name, "-n", self._namespace, "-o", "json"))
        )


def batches(log: str) -> Iterator[Batch]:
    """Micro-batches in a driver's log."""
    for line in log.splitlines():
        if line.startswith('{"event": "batch"'):
            yield _batch(json.loads(line))


def _batch(line: Mapping[str, Any]) -> Batch:
    source = line["sources"][0]
    began = datetime.fromisoformat(line["at"]).timestamp()
    durations = {name: milliseconds / 1000 for name, milliseconds in line["durations"].items()}
    before_reading = sum(durations.get(name, 0.0) for name in _BEFORE_READING)
    return Batch(
        number=line["batch"],
        epoch=source["epoch"],
        parallelism=source["parallelism"],
        rows=line["rows"],
        began=began,
        planned=began + before_reading,
        ended=began + durations["triggerExecution"],
    )


def owner_table(assignment: Assignment) -> str:
    """Who owns what, a line per reader, as ``orders/0``."""
    splits = len(assignment.owners)
    lines = [f"epoch {assignment.epoch}, {assignment.parallelism} readers, {splits} splits"]
    for reader in range(assignment.parallelism):
        mine = sorted(split_id for split_id, owner in assignment.owners.items() if owner == reader)
        shown = " ".join(f"{split_id[-2]}/{split_id[-1]}" for split_id in mine)
        lines.append(f"  reader {reader}  {len(mine):>2}  {shown}")
    return "\n".join(lines)


def moves(before: Assignment, after: Assignment) -> int:
    """Splits that have another owner now."""
    return sum(
        1
        for split_id, owner in before.owners.items()
        if after.owners.get(split_id) not in (None, owner)
    )
