"""What a state of the world is made of, and what can go wrong in it."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from balanced_source.api import SplitId
from balanced_source.connectors.discovery import DiscoveringSplitEnumerator
from balanced_source.coordinator import SourceCoordinator
from balanced_source.host import ReaderHost
from proof.shell import EMPTY, Planned

T = TypeVar("T")

Label: TypeAlias = tuple[Any, ...]
"""What happened in a step: words and numbers, shown joined by spaces."""

PartId: TypeAlias = int
"""Number of an interned part; 0 stands for none."""


class Violation(Exception):  # noqa: N818 - it is what the search looks for, not an error of it
    """A rule does not hold."""


class Budget(NamedTuple):
    """How many disturbances may still happen; each kind in any place.

    Attributes:
        rescales: the user changes parallelism, to any other value.
        crashes: an operator or a driver dies, between any two steps or between two effects of one
            turn.
        zombies: a driver that is thought dead continues, beside the one that replaces it.
        growths: a split appears.
        shrinks: a split disappears for good.
        blind: a discovery does not list splits that exist.
        faults: a call to the outside fails.
        old_news: a document, replaced by a newer one, is seen after it.
        amnesia: the operator's stored state is deleted while the operator is down.
        wipes: a driver dies and its Spark checkpoint is deleted, just when the operator knows all
            that was in it.
        edits: the user changes the source to another of the setting's variants.
        recreations: a topic is deleted and created again with the same name.
        restores: the operator's stored state is replaced by an older copy of it while the operator
            is down.
        rivals: a second operator process starts, and both believe to lead.
        hosts: the user wants another set of hosts.
        overdue: the operator waits no longer for a host that has not registered.
        losses: the operator gives up a host that does not report, whether its driver lives or not.
        silences: the operator gives nothing more to such a host.
        moves: all processes end, and a backup restores the source under another uid: its documents,
            except for reports, and its Spark checkpoints.
        copies: somebody copies the Spark checkpoints and the sink, and restores both later, while
            no driver runs.
    """

    rescales: int = 0
    crashes: int = 0
    zombies: int = 0
    growths: int = 0
    shrinks: int = 0
    blind: int = 0
    faults: int = 0
    old_news: int = 0
    amnesia: int = 0
    wipes: int = 0
    edits: int = 0
    recreations: int = 0
    restores: int = 0
    rivals: int = 0
    hosts: int = 0
    overdue: int = 0
    losses: int = 0
    silences: int = 0
    moves: int = 0
    copies: int = 0

    def minus(self, kind: str, number: int = 1) -> "Budget":
        """What is left."""
        return self._replace(**{kind: getattr(self, kind) - number})


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One exploration: where it begins, and what may happen.

    Attributes:
        name: for people.
        budget: see `Budget`.
        splits: number of splits at the beginning.
        records: number of records in each split; a micro-batch reads at most one of each.
        parallelism: number of readers at the beginning.
        parallelisms: what the user may rescale to.
        hosts: names of the reader hosts at the beginning.
        host_sets: names of the hosts that the user may choose instead.
        is_periodic: whether discovery is repeated; if not, readers must be told that there are no
            more splits.
        retention: seconds for which positions of removed splits are kept; no time passes.
        begins_latest: the user wants only what is written after the start: nothing of the splits
            that exist then.
        strategy: of assignment.
        are_drivers_early: whether drivers may start before anything is published; the operator
            makes no SparkApplication before that, but a driver may have its own coordinator, or
            outlive a deleted source.
        variants: names of the clusters, one tuple per version of the source that the user may
            choose; those behind a `-` are not read in it, and may be read on later.
        is_bounded: whether reading ends where the splits end when they are found; later records are
            not read.
        names: topics that the user names, which may not exist; empty: all are read.
        has_executors: whether a larger parallelism waits for executors.
        may_lose: `onDataLoss: Continue`.
        may_repeat: `guarantee: AtLeastOnce` for hosts that are given up: records may be delivered
            again, and none may be missing.
    """

    name: str
    budget: Budget = field(default_factory=Budget)
    splits: int = 2
    records: int = 2
    parallelism: int = 1
    parallelisms: tuple[int, ...] = (1, 2, 3)
    hosts: tuple[str, ...] = ("0",)
    host_sets: tuple[tuple[str, ...], ...] = ()
    is_periodic: bool = True
    retention: float = 0.0
    begins_latest: bool = False
    strategy: str = "RoundRobin"
    are_drivers_early: bool = False
    variants: tuple[tuple[str, ...], ...] = (("c",),)
    is_bounded: bool = False
    names: tuple[str, ...] = ()
    has_executors: bool = False
    may_lose: bool = False
    may_repeat: bool = False

    @property
    def all_hosts(self) -> tuple[str, ...]:
        """All hosts that there may ever be."""
        return tuple(
            dict.fromkeys(name for names in (self.hosts, *self.host_sets) for name in names)
        )

    @property
    def clusters(self) -> tuple[str, ...]:
        """All clusters of all variants."""
        return tuple(
            dict.fromkeys(name.removeprefix("-") for variant in self.variants for name in variant)
        )


class Wanted(NamedTuple):
    """What the user wants.

    Attributes:
        parallelism: number of readers.
        spec: the variant of the source.
        hosts: names of the hosts.
    """

    parallelism: int
    spec: int
    hosts: tuple[str, ...]


class World(NamedTuple):
    """A state: numbers of interned parts, so that it is small, and compared and hashed at once.

    Attributes:
        operator: its coordinator (`Operator`); 0 while it is down.
        stored: the checkpoint in the enumerator's document.
        published: the assignment document.
        desired: parallelism that the user wants.
        broker: splits that exist, and the lives of their topics (`brokers.Lives`).
        delivered: split and life → number of records that the sink has, of its first ones, without
            a gap.
        hosts: names of the hosts that the user wants.
        drivers: one per host that there may ever be (`Driver`).
        old_assignment: an assignment document that someone may still see, although a newer one is
            published.
        old_report: the same of a report.
        spec: the variant of the source that the user wants.
        backup: an older copy of the stored state.
        rival: a second operator that also believes to lead; 0 if there is none.
        stale: whose view of the stored state is older than the state: 1 the operator's, 2 the
            rival's, 0 no one's.
        late: an assignment that an operator has stored the state for, and publishes after a pause.
        copy: drivers and what the sink has, at the moment of a copy; empty if there is none.
        budget: disturbances that may still happen.
    """

    operator: PartId
    stored: PartId
    published: PartId
    desired: int
    broker: PartId
    delivered: PartId
    hosts: tuple[str, ...]
    drivers: tuple[PartId, ...]
    old_assignment: PartId
    old_report: PartId
    spec: int
    backup: PartId
    rival: PartId
    stale: int
    late: PartId
    copy: tuple[PartId, ...]
    budget: Budget

    @property
    def wanted(self) -> Wanted:
        """What the user wants."""
        return Wanted(self.desired, self.spec, self.hosts)


@dataclass(frozen=True, slots=True)
class Operator:
    """A running operator.

    Attributes:
        coordinator: the real one.
        spec: variant of the source that it has seen last.
        asked: scopes that it has asked since it started.
        wrote: the assignment that it has published last; only where another operator may overwrite
            it.
    """

    coordinator: SourceCoordinator[Any, Any]
    spec: int = 0
    asked: frozenset[str] = frozenset()
    wrote: PartId = 0

    @property
    def enumerator(self) -> DiscoveringSplitEnumerator[Any]:
        """The coordinator's."""
        return enumerator_of(self.coordinator)


def enumerator_of(coordinator: SourceCoordinator[Any, Any]) -> DiscoveringSplitEnumerator[Any]:
    """The enumerator that a coordinator drives."""
    enumerator = coordinator.enumerator
    assert isinstance(enumerator, DiscoveringSplitEnumerator)
    return enumerator


@dataclass(frozen=True, slots=True)
class Log:
    """Spark's checkpoint.

    Attributes:
        before: last but one entry of the offset log, as text.
        last: newest entry.
        planned: what readers read between the two, as planned when `last` was logged.
        is_committed: whether the commit log has `last`.
    """

    before: str = EMPTY
    last: str = EMPTY
    planned: Planned = ()
    is_committed: bool = True


@dataclass(frozen=True, slots=True)
class Runner:
    """A driver process.

    Attributes:
        host: its state machine.
        at: newest entry of the offset log that it knows, as text.
        newest: assignment document that it has seen last; 0 if none.
        settings: how readers connect, from all assignments that it has seen.
        is_told: whether everything that `host` can tell stands in its report.
        ready: number of readers for which executors are there; not counted unless the setting says
            so.
        is_busy: from logging a micro-batch until its end.
        has_closed: whether it has planned the micro-batch that tells the query to stop.
        is_stopping: whether it has run that micro-batch.
    """

    host: ReaderHost
    at: str
    newest: PartId = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    is_told: bool = False
    ready: int = 0
    is_busy: bool = False
    has_closed: bool = False
    is_stopping: bool = False


@dataclass(frozen=True, slots=True)
class Driver:
    """A reader host in its surroundings.

    Attributes:
        name: of the host.
        log: its Spark checkpoint.
        report: its report document; None before the first.
        live: its newest process, if it runs.
        zombie: an older process that still runs.
        is_done: whether its query has ended by itself.
    """

    name: str
    log: Log = field(default_factory=Log)
    report: Any = None
    live: Runner | None = None
    zombie: Runner | None = None
    is_done: bool = False


class Table(Generic[T]):
    """Interned parts: equal keys, one number, one representative."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._numbers: dict[Hashable, PartId] = {}

    def add(self, value: T, key: Hashable) -> PartId:
        """The number of the part, at least 1."""
        number = self._numbers.get(key)
        if number is None:
            self.values.append(value)
            number = self._numbers[key] = len(self.values)
        return number

    def of(self, text: str, read: Callable[[str], T]) -> PartId:
        """The number of a document: what is explored is what is read back from its text."""
        number = self._numbers.get(text)
        return self.add(read(text), text) if number is None else number

    def __getitem__(self, number: PartId) -> T:
        return self.values[number - 1]

    def __len__(self) -> int:
        return len(self.values)


Delivered: TypeAlias = Mapping[tuple[SplitId, int], int]
