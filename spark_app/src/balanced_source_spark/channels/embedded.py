"""No operator: the driver runs the coordinator itself, in a thread.

Nothing is stored outside Spark's checkpoint, unless the query has a folder for the enumerator
state.
"""

import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from balanced_source.api import CallExecutor, Problem, ProblemKey, Source
from balanced_source.connectors.discovery import CONFIRMATION_DELAY
from balanced_source.coordinator import (
    Checkpoint,
    ParallelismChanged,
    ReportReceived,
    SourceCoordinator,
    state_codec,
)
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.errors import CorruptDocumentError, RefusedDiscoveryError
from balanced_source_adapters.coordinator_loop import CoordinatorLoop, why_failed
from balanced_source_adapters.folder import FolderStore
from balanced_source_adapters.mistakes import discovery_errors, named
from balanced_source_spark.channels.channel import AssignmentListener
from balanced_source_spark.instance import Instance

CONFIRM: Final = CONFIRMATION_DELAY + 1.0
"""Seconds without any split after which there is nothing to read: the servers of a source may learn
of new splits one after another."""

NO_SPLITS: Final = (
    "the source has answered, and what the options select has no splits. Check the options"
)


MOST_RETAINED: Final = 1000
"""Splits that are not read, of which a checkpoint keeps the positions where nothing else does."""


UID: Final = "embedded"
"""Stands for the resource's uid in the stored state."""


CLOSING: Final = 5.0
"""Seconds that a query waits for the last state to be written when it ends, at most."""


class EmbeddedChannel:
    """See `AssignmentChannel`; both sides of it are here."""

    has_operator = False

    def __init__(
        self,
        source: Source[Any, Any],
        execute: CallExecutor,
        *,
        parallelism: int,
        confirm: float = CONFIRM,
        state: FolderStore | None = None,
    ) -> None:
        """A channel that is not started yet; for `confirm` see `CONFIRM`.

        Raises:
            StateError: what is stored cannot be read, or is of another source.
            ConnectorError, ContractViolationError: the connector's enumerator cannot be made.
        """
        self._confirm = confirm
        self._state = state
        self.is_durable = state is not None
        with named(source):
            self._coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(
                source,
                parallelism=parallelism,
                keeps_finished=state is None,
                restored=_restored(state, source),
            )
        self._is_rescaled = self._coordinator.state.parallelism != parallelism
        self._parallelism = parallelism
        self._execute = execute
        self._loop: CoordinatorLoop | None = None
        self._thread: threading.Thread | None = None
        self._has_splits = False

    @property
    def coordinator(self) -> SourceCoordinator[Any, Any]:
        """What decides; for looking at."""
        return self._loop.coordinator if self._loop is not None else self._coordinator

    def start(self, listener: AssignmentListener) -> None:
        publish = partial(self._publish, listener)
        self._loop = CoordinatorLoop(
            self._coordinator, self._execute, publish=publish, persist=self._persist
        )
        self._thread = self._loop.start()
        # What is stored has the number of readers of the former query, and the option asks for
        # another.
        if self._is_rescaled:
            self.rescale(self._parallelism)

    def _publish(self, listener: AssignmentListener, assignment: Assignment) -> None:
        """Hold back epochs without splits until the first one that has some.

        Spark's checkpoint is all that is stored. If its first micro-batch held no splits because no
        server had answered yet, the next query could not tell that a split was recreated since.
        Where readers ask for splits, they must have seen an epoch before.
        """
        self._has_splits |= bool(assignment.owners) or assignment.look_ahead > 0
        if self._has_splits:
            listener(assignment)

    def _persist(self, checkpoint: Checkpoint[Any, Any]) -> None:
        if self._state is not None:
            self._state.swap(state_codec.encode(checkpoint, self.coordinator.source, uid=UID))

    def claim(self, host: str) -> int:
        known = self._coordinator.state.hosts.get(host)
        # No one else writes: both sides of this channel are one process.
        return 1 if known is None else known.incarnation + 1

    def former(self, host: str) -> HostReport | None:
        return None

    def is_gone(self, instance: Instance) -> bool:
        return False

    def write(self, report: HostReport) -> None:
        if self._loop is not None:
            self._loop.put(ReportReceived(self._bounded(report)))

    def _bounded(self, report: HostReport) -> HostReport:
        """Return a report without positions that would be kept without end.

        Where nothing is stored, their deadline begins again with each query. A checkpoint must not
        grow by each topic that was ever deleted.
        """
        if self.is_durable or len(report.retained) <= MOST_RETAINED:
            return report
        return replace(report, retained={})

    def rescale(self, parallelism: int) -> None:
        """Change the number of readers while the query runs."""
        if self._loop is not None:
            self._loop.put(ParallelismChanged(parallelism))

    def refusal(self) -> str | None:
        """Return why the first discovery or look-up was refused, or why there is nothing."""
        if self._loop is not None and (problem := self._loop.problem) is not None:
            return why_failed(problem)
        if self._loop is not None and self._loop.empty_for > self._confirm:
            why = (
                "; ".join(problem.message for problem in self._loop.problems.values()) or NO_SPLITS
            )
            return (
                f"there is nothing to read: {why.removesuffix('; looking again')}, then start the"
                " query again"
            )
        blocked = discovery_errors(self.coordinator, blocked=True).values()
        return (
            "; ".join(
                str(problem) for problem in blocked if isinstance(problem, RefusedDiscoveryError)
            )
            or None
        )

    @property
    def has_heard(self) -> bool:
        """Whether the coordinator has taken in a report, or cannot: then it says why."""
        loop = self._loop
        return loop is not None and (loop.has_heard or loop.problem is not None)

    @property
    def settled_epoch(self) -> int | None:
        """See `CoordinatorLoop.settled_epoch`."""
        return self._loop.settled_epoch if self._loop is not None else None

    @property
    def reader_settings(self) -> Mapping[str, Any]:
        """How readers connect: a replay needs no answer of any server to be planned."""
        source = self.coordinator.source
        with named(source):
            return source.reader_settings()

    @property
    def is_asking(self) -> bool:
        """Whether a question to the source is under way."""
        return self._loop is not None and self._loop.is_asking

    @property
    def undiscovered(self) -> frozenset[str]:
        """The scopes that have not answered yet."""
        return self._loop.undiscovered if self._loop is not None else frozenset()

    def problems(self) -> Mapping[ProblemKey, Problem]:
        """Return what is wrong now.

        Where there is nothing else to read, those that waiting does not help are fatal.
        """
        if (loop := self._loop) is None:
            return {}
        found = loop.problems
        # What was assigned in a former part of a hybrid source is read.
        is_read = loop.only_awaits or not loop.has_assigned
        if not is_read or loop.empty_for <= self._confirm:
            return found
        return {
            key: replace(problem, is_fatal=problem.is_fatal or problem.is_hopeless)
            for key, problem in found.items()
        }

    def close(self) -> None:
        if self._loop is not None:
            self._loop.close()
        # A state that is written after the next query has read it would end that query.
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(CLOSING)


def _restored(store: FolderStore | None, source: Source[Any, Any]) -> Checkpoint[Any, Any] | None:
    text = store.read() if store is not None else None
    if store is None or text is None:
        return None
    try:
        return state_codec.decode(text, source, uid=UID)
    except CorruptDocumentError as error:
        raise CorruptDocumentError(
            f"the stored state {store.path} is damaged: restore it together with the Spark"
            " checkpoint, or delete it, and the query says what it can do without it. Details:"
            f" {error}"
        ) from error
