"""Tapes: splits that grow and do not say how far.

A source whose tasks get readers, for tests without Spark.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import pyarrow as pa

from balanced_source.api import (
    IDENTITY,
    STOP,
    AsyncCall,
    Boundedness,
    Json,
    Position,
    RebalancePolicy,
    RecordEmitter,
    SourceOutput,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
    SplitId,
    SplitReader,
    SplitsAddition,
    SplitsChange,
)
from balanced_source.assigners import RoundRobinAssigner, SplitAssigner
from balanced_source.connectors.discovery import (
    Alarm,
    Discover,
    Discovered,
    DiscoveringSource,
    Initialize,
)
from balanced_source.host.ends import Mark, SplitEnd
from balanced_source.reader import RecordsBySplits, SourceReaderBase
from balanced_source.testing.inline_fetchers import InlineFetchers
from balanced_source_spark.contract.half import Choices, Query
from balanced_source_spark.contract.hooks import PlannerContext
from balanced_source_spark.contract.readers import ReaderHooks, ReadersHalf

Record = tuple[str, int]
SHELF: Final = "shelf"


@dataclass(frozen=True, slots=True, kw_only=True)
class TapeSplit(SourceSplit):
    """A tape from record `next` on; with a stop if it has one."""

    name: str
    next: int = 0
    stop: int | None = None
    identity: str | None = None

    @property
    def split_id(self) -> SplitId:
        return (SHELF, self.name)

    @property
    def position(self) -> Position:
        return self.next

    def at(self, position: Position) -> Self:
        return replace(self, next=int(position or 0))

    def attributes(self) -> Mapping[str, Any]:
        told = {STOP: self.stop, IDENTITY: self.identity}
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTapes(Discover):
    """Which tapes there are."""

    scope: str
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FindTapes(Initialize):
    """Where new ones begin."""

    scope: str
    split_ids: tuple[SplitId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TapeSource(DiscoveringSource[TapeSplit]):
    """All tapes of the shelf."""

    assigner: SplitAssigner = field(default_factory=RoundRobinAssigner)
    rebalance_policy: RebalancePolicy = field(default_factory=RebalancePolicy)
    discovery_interval: float | None = 0.05
    failure_threshold: int = 1
    retention: float = 0.0
    may_lose: bool = False
    is_bounded: bool = False

    @property
    def kind(self) -> str:
        return "tapes"

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self.is_bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def scopes(self) -> tuple[str, ...]:
        return (SHELF,)

    def scope_of(self, split_id: SplitId) -> str:
        return str(split_id[0])

    def subscribes(self, split_id: SplitId) -> bool:
        return True

    def discover(self, scope: str, round_number: int) -> ListTapes:
        return ListTapes(scope=scope, round=round_number)

    def initialize(
        self, scope: str, split_ids: Collection[SplitId], *, is_first: bool
    ) -> FindTapes:
        return FindTapes(scope=scope, split_ids=tuple(split_ids))

    def create_split(
        self, split_id: SplitId, position: Position, attributes: Mapping[str, Any]
    ) -> TapeSplit:
        return TapeSplit(
            name=str(split_id[1]),
            next=int(position or 0),
            stop=attributes.get(STOP),
            identity=attributes.get(IDENTITY),
        )

    def reader_settings(self) -> Mapping[str, Any]:
        return {"tapes": {}}


@dataclass
class Shelf:
    """What there is.

    Attributes:
        lengths: tape → records.
        stops: tape → where it ends for good.
        ends: the same, for tapes of which only reading tells that they end.
        begins: tape → first record that is still there; 0 for all others.
        gives_up: a reader ends a split with a stop after so many fetches, wherever it is then: a
            mistake.
        reads: how often a reader has begun.
        timed: tapes whose readers know how far they are behind in time.
        labels: tape → what tells it from another one of its name.
        thrown: tapes that do not exist any more, although the list of tapes still has them.
        times: tape → when its first record happened, and the milliseconds between two records.
    """

    lengths: dict[str, int] = field(default_factory=dict)
    stops: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    begins: dict[str, int] = field(default_factory=dict)
    gives_up: int | None = None
    reads: int = 0
    timed: set[str] = field(default_factory=set)
    labels: dict[str, str] = field(default_factory=dict)
    thrown: set[str] = field(default_factory=set)
    times: dict[str, tuple[int, int]] = field(default_factory=dict)

    def time_of(self, record: Record) -> int | None:
        """When a record happened; None: it does not say."""
        name, number = record
        if name not in self.times:
            return None
        begin, step = self.times[name]
        return begin + number * step

    def records(self) -> set[Record]:
        """Every record."""
        return {(name, n) for name, length in self.lengths.items() for n in range(length)}

    def execute(self, call: AsyncCall) -> Any:
        """Answer the enumerator."""
        match call:
            case ListTapes():
                return Discovered(split_ids=frozenset((SHELF, name) for name in self.lengths))
            case FindTapes(split_ids=found):
                names = [str(s[1]) for s in found]
                return [
                    TapeSplit(name=n, stop=self.stops.get(n), identity=self.labels.get(n))
                    for n in names
                ]
            case Alarm():
                return None
        raise TypeError(call)


def shelf(count: int = 3, length: int = 12) -> Shelf:
    """Tapes of the same length, `tape-0` and so on."""
    return Shelf(lengths={f"tape-{number}": length for number in range(count)})


class TapeReader(SplitReader[int, TapeSplit]):
    """Brings a few records of each tape at a time, and says when one is at its end."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._splits: dict[SplitId, TapeSplit] = {}
        self._fetches = 0

    def fetch(self) -> RecordsBySplits[int]:
        found: dict[SplitId, Sequence[int]] = {}
        self._fetches += 1
        for split_id, split in self._splits.items():
            end = min(
                split.next + 2,
                self._shelf.lengths[split.name],
                self._shelf.ends.get(split.name, split.next + 2),
            )
            end = end if split.stop is None else min(end, split.stop)
            if end > split.next:
                found[split_id] = range(max(split.next, self._shelf.begins.get(split.name, 0)), end)
                self._splits[split_id] = split.at(end)
        ends = self._shelf.ends
        done = [
            s
            for s, split in self._splits.items()
            if split.next in (split.stop, ends.get(split.name))
            or (split.stop is not None and self._fetches == self._shelf.gives_up)
        ]
        for split_id in done:
            del self._splits[split_id]
        return RecordsBySplits(found, done)

    def handle_splits_changes(self, change: SplitsChange[TapeSplit]) -> None:
        for split in change.splits:
            self._splits.pop(split.split_id, None)
            if isinstance(change, SplitsAddition):
                self._splits[split.split_id] = split

    def wake_up(self) -> None:
        """Never blocks."""

    def close(self) -> None:
        self._splits.clear()


class TapeEmitter(RecordEmitter[int, Record, list[TapeSplit]]):
    """A record is the name of its tape and its number; it comes as often as it `repeats`."""

    def __init__(
        self, repeats: int, time_of: Callable[[Record], int | None] = lambda _: None
    ) -> None:
        self._repeats = repeats
        self._time_of = time_of

    def emit_record(
        self, element: int, output: SourceOutput[Record], split_state: list[TapeSplit]
    ) -> None:
        assert element >= split_state[0].next
        for _ in range(self._repeats):
            record = (split_state[0].name, element)
            output.collect(record, self._time_of(record))
        split_state[0] = split_state[0].at(element + 1)


class TapeSourceReader(SourceReaderBase[int, Record, TapeSplit, list[TapeSplit]]):
    """Reads tapes of one shelf.

    Those that are timed are a second behind for each record that is left.
    """

    shelf: Shelf

    def millis_behind(self) -> Mapping[SplitId, int]:
        at = {s: state[0] for s, state in self._states.items() if state[0].name in self.shelf.timed}
        return {s: 1000 * (self.shelf.lengths[split.name] - split.next) for s, split in at.items()}

    def initialized_state(self, split: TapeSplit) -> list[TapeSplit]:
        return [split]

    def to_split(self, split_id: SplitId, state: list[TapeSplit]) -> TapeSplit:
        return state[0]


@dataclass
class TapeHalf(ReadersHalf[None, Record, TapeSplit]):
    """Tapes; `knows_ends` chooses hooks that know how long they are."""

    shelf: Shelf
    knows_ends: bool = False
    honours_stops: bool = True
    is_continued: bool = False
    skips: bool = False
    repeats: int = 1
    is_queue: bool = False
    is_timed: bool = False

    @property
    def is_replayable(self) -> bool:
        return not self.is_queue

    def may_skip(self, query: Query[None], settings: Mapping[str, Any]) -> bool:
        assert settings == {"tapes": {}}
        return self.skips

    def read_options(self, options: Mapping[str, str]) -> None:
        return None

    def schema(self, read: None) -> str:
        return "tape STRING, number BIGINT"

    def source(self, options: Mapping[str, str], choices: Choices) -> TapeSource:
        return TapeSource(assigner=choices.assigner)

    def split(
        self, split_id: SplitId, position: Position, attributes: Mapping[str, Json]
    ) -> TapeSplit:
        stop = attributes.get(STOP) if self.honours_stops else None
        return TapeSplit(name=str(split_id[1]), next=int(position or 0), stop=stop)

    def reader(
        self, query: Query[None], settings: Mapping[str, Any], context: SourceReaderContext
    ) -> SourceReader[Record, TapeSplit]:
        assert settings == {"tapes": {}}
        self.shelf.reads += 1
        fetchers = InlineFetchers(lambda: TapeReader(self.shelf))
        reader = TapeSourceReader(context, fetchers, TapeEmitter(self.repeats, self.shelf.time_of))
        reader.shelf = self.shelf
        return reader

    def rows(self, records: Sequence[Record]) -> pa.RecordBatch:
        columns = {"tape": [r[0] for r in records], "number": [r[1] for r in records]}
        return pa.RecordBatch.from_pydict(columns)

    def hooks(self, context: PlannerContext[None]) -> ReaderHooks:
        return (
            TapeEnds(self.shelf, is_timed=self.is_timed)
            if self.knows_ends
            else ContinuedTapes()
            if self.is_continued
            else TimedTapes()
            if self.is_timed
            else ReaderHooks()
        )


class ForgetfulHalf(TapeHalf):
    """Its snapshots leave out splits of which nothing was emitted."""

    def reader(self, *args: Any) -> Any:
        made = super().reader(*args)
        all_of = made.snapshot_state
        made.snapshot_state = lambda n: tuple(s for s in all_of(n) if s.position)  # type: ignore[method-assign]
        return made


class ContinuedTapes(ReaderHooks):
    """Another tape continues each one that ends."""

    @property
    def is_continued(self) -> bool:
        return True


class TimedTapes(ReaderHooks):
    """Each record has a time."""

    @property
    def tells_event_times(self) -> bool:
        return True


class TapeEnds(ReaderHooks):
    """Says how long tapes are."""

    def __init__(self, shelf: Shelf, *, is_timed: bool) -> None:
        self._shelf = shelf
        self._is_timed = is_timed

    @property
    def tells_event_times(self) -> bool:
        return self._is_timed

    def ends(
        self, scope: str, split_ids: Collection[SplitId], marks: Mapping[SplitId, Mark]
    ) -> Mapping[SplitId, SplitEnd]:
        lengths, labels = self._shelf.lengths, self._shelf.labels
        names = {s: str(s[1]) for s in split_ids}
        return {
            s: SplitEnd(end=lengths[name], identity=labels.get(name))
            for s, name in names.items()
            if name not in self._shelf.thrown
        }
