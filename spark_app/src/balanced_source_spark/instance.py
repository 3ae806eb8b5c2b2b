"""Which process a driver is, so that its successor can tell whether it is gone.

The identity travels in the report's `instance`, which older software compares as plain text.
"""

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from balanced_source.documents.environment import POD_NAME, POD_UID

_ZOMBIE: Final = "Z"
_STATE, _STARTED = 0, 19  # fields of /proc/PID/stat after the name of the program


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """Identity of one driver process.

    Attributes:
        id: random, new for each attempt.
        pod: name of its pod; empty outside Kubernetes.
        uid: of the pod; empty if unknown.
        machine: boot id and pid namespace, in which `pid` means something; empty if unknown.
        pid: process id of the planning process.
        started: when that process started, in ticks since the boot.
    """

    id: str
    pod: str = ""
    uid: str = ""
    machine: str = ""
    pid: int = 0
    started: int = 0

    @classmethod
    def of_this_process(cls, environment: Mapping[str, str] = os.environ) -> "Instance":
        """Return the identity of this process, with a new random id."""
        machine, pid = _machine(), os.getpid()
        found = _process(pid)
        return cls(
            id=uuid.uuid4().hex[:8],
            pod=environment.get(POD_NAME, ""),
            uid=environment.get(POD_UID, ""),
            machine=machine if found is not None else "",
            pid=pid,
            started=found[1] if found is not None else 0,
        )

    @classmethod
    def parse(cls, text: str) -> "Instance":
        """Read what `str` wrote; of anything else only the id is known."""
        first, *rest = text.split(" ") if text else [""]
        pairs = dict(part.partition("=")[::2] for part in rest)
        known = {f.name: pairs[f.name] for f in fields(cls) if f.name in pairs}
        try:
            numbers = {name: int(known.pop(name)) for name in ("pid", "started") if name in known}
        except ValueError:
            return cls(id=text)
        return cls(id=first, **known, **numbers)  # type: ignore[arg-type]

    def __str__(self) -> str:
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "id"}
        return " ".join([self.id, *(f"{name}={value}" for name, value in values.items() if value)])

    @property
    def where(self) -> str:
        """For people: where it runs."""
        return (
            f"pod {self.pod}"
            if self.pod
            else f"process {self.pid}"
            if self.pid
            else f"instance {self.id}"
        )

    def is_gone(self, *, seen_from: "Instance") -> bool:
        """Return whether this process has ended, as far as the process `seen_from` can tell.

        True is certain: its process id is free or taken by another process, or its pod was
        replaced. Kubernetes has at most one pod of a name, and gives the name away again only when
        the containers of the former one have ended.
        """
        # Boot id and pid namespace: elsewhere, the same process id means another process.
        if self.machine and self.machine == seen_from.machine:
            return _process(self.pid) != ("", self.started)
        is_replaced = bool(self.uid and seen_from.uid) and self.uid != seen_from.uid
        return is_replaced and self.pod == seen_from.pod


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def _process(pid: int) -> tuple[str, int] | None:
    """An empty string and the start time of a process that runs; None if there is none."""
    try:
        # After the last bracket: the name of a program may hold spaces and brackets.
        found = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        # A zombie runs nothing any more; it only waits for its parent to take its exit code.
        return None if found[_STATE] == _ZOMBIE else ("", int(found[_STARTED]))
    except (OSError, IndexError, ValueError):
        return None
