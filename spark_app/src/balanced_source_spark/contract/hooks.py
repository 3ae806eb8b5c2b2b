"""What planning asks of a connector while a query runs.

Every hook but `ends` has a neutral default.

All hooks are called in the planning process beside the driver JVM. An exception there ends the
query, so a hook raises only what its docstring names. Any other exception counts as a mistake: the
query ends with a sentence that names connector and hook, and the log has the traceback. In `ends`
and `event_times` it counts as silence of the servers.

`ends` and `event_times` are called in threads of their own, one per scope; all others in Spark's
planning thread, where they must not block.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Generic, TypeAlias, TypeVar

from balanced_source.api import Problem, ProblemKey, SourceEvent, SplitId
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host import ReaderPlan, SplitRange
from balanced_source.host.alignment import RecordTime
from balanced_source.host.ends import Look, Mark, SplitEnd
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_spark.contract.half import Query

ReadT = TypeVar("ReadT")

WithFormer: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]]
"""See `PlannerHooks.with_former`."""

log = get_logger(__name__)

NO_SETTINGS: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerContext(Generic[ReadT]):
    """What hooks may use.

    Attributes:
        query: see `Query`.
        settings: returns `Source.reader_settings` of the newest assignment; empty while there is
            none.
        known_settings: returns the same after `PlannerHooks.with_former`; empty while there is
            none.
        set_problem: sets the problem for a key, or clears it when the problem is None. The operator
            turns it into a condition.
        check_problems: raises the first fatal problem if there is no operator to report it.
        send_source_event: sends an event of a reader to the enumerator, once and in order. Returns
            whether it was sent: while the driver is not registered there is no one to send it, and
            a driver that dies takes along what was not delivered.
    """

    query: Query[ReadT]
    settings: Callable[[], Mapping[str, Any]]
    known_settings: Callable[[], Mapping[str, Any]]
    set_problem: Callable[[ProblemKey, Problem | None], None]
    check_problems: Callable[[], None]
    send_source_event: Callable[[int, SourceEvent], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number for Prometheus.

    Attributes:
        name: of the gauge, without the prefix ``balanced_source_host_``.
        text: what it counts, in which unit.
        labels: names of labels → values; the label `source` is added.
        value: the number.
    """

    name: str
    text: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


def newest_settings(settings: Mapping[str, Any], _: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the newest settings, whatever the former ones were."""
    return settings


class PlannerHooks(ABC):
    """See the module."""

    @abstractmethod
    def ends(
        self, scope: str, split_ids: Collection[SplitId], marks: Mapping[SplitId, Mark]
    ) -> Mapping[SplitId, SplitEnd]:
        """Return how far the splits of a scope can be read now. Blocking.

        A split that is left out counts as deleted after a while.

        Args:
            scope: of all these splits, see `scope_of`.
            split_ids: those that are asked for.
            marks: up to where each of them is read; for sources whose logs may be cut.

        Raises:
            DiscoveryError: the scope does not answer, or not for all splits; with the answers that
                there are.
        """

    def scope_of(self, split_id: SplitId) -> str:
        """Return the part of the source that answers for a split.

        A silent one holds back no other.
        """
        return str(split_id[0])

    @property
    def tells_event_times(self) -> bool:
        """Whether splits can be aligned in event time: whether `event_times` was overridden.

        `Source.has_event_times` says the same where specs are validated.
        """
        return type(self).event_times is not PlannerHooks.event_times

    def event_times(
        self, scope: str, millis: Mapping[SplitId, int]
    ) -> Mapping[SplitId, RecordTime | None]:
        """Return the first record at or after a time of each split, None for a split without one.

        Blocking.

        Only asked when splits are aligned in event time. Splits that are left out are not read on
        until they are idle.

        Raises:
            DiscoveryError: the scope does not answer.
        """
        return {}

    def admit(
        self, held: Mapping[SplitId, int], reachable: Mapping[SplitId, int], *, may_wait: bool
    ) -> Mapping[SplitId, int]:
        """Return where the next micro-batch ends: between `held` and `reachable` for each split.

        Args:
            held: where each split stands.
            reachable: how far it could be read.
            may_wait: False in a query that ends by itself: it has ended if nothing moves.
        """
        return reachable

    def asked_for(self, split_ids: Collection[SplitId]) -> Collection[SplitId] | None:
        """Return those of some splits that readers have asked for; None if it does not say.

        Asked of sources whose readers ask for splits: a slow reader reads less of these, so that
        others need not wait. None counts as all splits, and as none of a part of a hybrid source:
        the part may assign its splits by itself, and then each reader reads what it owns.
        """
        del split_ids
        return None

    def are_all_unread(self, split_ids: Collection[SplitId]) -> bool:
        """Return whether nothing is unread but what is of these splits, all that readers hold.

        False leaves the lag of the source unknown: later parts of a hybrid source may have any
        number of records.
        """
        del split_ids
        return True

    def may_cut(self, split_id: SplitId) -> bool:
        """Return whether a split can be read in parts, at any position.

        Asked of sources whose readers ask for splits: a slow reader reads a part of a split, while
        others read whole ones. A split that cannot be cut is read as a whole.
        """
        del split_id
        return True

    def may_skip(self) -> bool:
        """Return whether the user accepts that records which are gone are skipped."""
        return False

    def note_look(self, base: StreamOffset, seen: Look) -> None:  # noqa: B027 - neutral
        """Take note of what the ends mean for the splits of `base`.

        Here a connector reports records that are gone. If it does not override this, planning does:
        by a condition of the source or, where no operator can report it, by the end of the query;
        by a warning if `may_skip` returns True.

        Raises:
            FatalProblemError: records are gone, the user does not accept that, and no operator can
                report it.
        """

    # Neutral
    def note_planned(self, plans: Iterable[ReaderPlan], settings: Mapping[str, Any]) -> None:  # noqa: B027
        """Take note of a micro-batch that is planned, with the settings that its tasks get."""

    def note_skipped(self, ranges: Collection[SplitRange]) -> None:  # noqa: B027 - neutral
        """Take note of what tasks have passed over, because it was deleted after it was planned.

        Each task that skips something says so with `tell_skipped`. It may say it more than once, as
        a task that is tried again does, and what it says may get lost.
        """

    def handle_source_event(self, subtask_id: int, event: SourceEvent) -> None:
        """Take an event that the enumerator has sent to a reader.

        Once, in order, after the splits before it.

        Spark's tasks live for one micro-batch, so the planning process receives events on behalf of
        its readers. Those of a former incarnation of the driver are not repeated: the enumerator
        says again what a new one must know.
        """
        log.warning(
            "this event of the enumerator is not expected", reader=subtask_id, name=event.name
        )

    def note_delivered(self, delivered: StreamOffset) -> None:  # noqa: B027 - neutral
        """Note that all up to `delivered` is committed (FLIP-27's ``notifyCheckpointComplete``)."""

    def with_former(
        self, settings: Mapping[str, Any], former: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return the settings for tasks.

        The newest, with what a micro-batch that was planned before may still need.

        Called in any thread.
        """
        return newest_settings(settings, former)

    def numbers(self) -> Mapping[str, int]:
        """Return numbers for the query's progress and the report; only those that say something."""
        return {}

    def figures(self) -> Iterable[Figure]:
        """Return numbers for Prometheus; asked in each micro-batch if `Query.has_metrics`."""
        return ()

    def close(self) -> None:  # noqa: B027 - neutral
        """Close clients and threads. Called once, at the end of the query."""
