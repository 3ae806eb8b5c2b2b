"""A folder of files as a plain queue, as an installed connector.

It hands out what no one has confirmed, each time in another order. So a range cannot be read again,
and delivery is at least once.
"""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from balanced_source.api import (
    STOP,
    AsyncCall,
    Caller,
    CallExecutor,
    Connector,
    Identity,
    Json,
    NamedSecrets,
    Position,
    RecordEmitter,
    SecretReader,
    SourceOutput,
    SourceReader,
    SourceReaderContext,
    SplitId,
    SplitReader,
    SplitsAddition,
    SplitsChange,
)
from balanced_source.connectors.discovery import Discovered
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.reader import RecordsBySplits, SourceReaderBase
from balanced_source.testing.inline_fetchers import InlineFetchers
from balanced_source_spark.contract.half import Choices, Query
from balanced_source_spark.contract.hooks import PlannerContext
from balanced_source_spark.contract.option_table import Option
from balanced_source_spark.contract.readers import ReaderHooks, ReadersHalf
from support import installed
from support.tapes import SHELF, FindTapes, ListTapes, TapeSource, TapeSplit

KIND: Final = "queue"
QUEUE: Final[SplitId] = (SHELF, KIND)

Handed = tuple[int, str]
"""Position, name of the item."""


def register(folder: Path) -> None:
    """Make a folder that registers the connector where it is on the path."""
    installed.register(folder, KIND, f"{__name__}:QueueConnector")


class Queue:
    """The service behind the connector.

    Args:
        folder: has the items, and what was handed out: a file per position, with the item's name.
    """

    def __init__(self, folder: Path) -> None:
        self._items, self._handed = folder / "items", folder / "handed"
        for made in (self._items, self._handed):
            made.mkdir(parents=True, exist_ok=True)

    @property
    def items(self) -> set[str]:
        """Names of the items that no one has confirmed."""
        return {path.name for path in self._items.iterdir()}

    def put(self, names: Sequence[str]) -> None:
        """Append items."""
        for name in names:
            (self._items / name).touch()

    def hand_out(self, position: int, held: set[str]) -> list[Handed]:
        """Return the items that are not held, in any order, and note at which positions."""
        names = sorted(self.items - held)
        random.shuffle(names)
        found = list(enumerate(names, position))
        for number, name in found:
            (self._handed / str(number)).write_text(name)
        return found

    def confirm(self, position: int) -> None:
        """Delete what was handed out last at the positions before this one."""
        for handed in [path for path in self._handed.iterdir() if int(path.name) < position]:
            (self._items / handed.read_text()).unlink(missing_ok=True)
            handed.unlink()


class QueueSource(TapeSource):
    """One queue as the only split."""

    @property
    def kind(self) -> str:
        return KIND

    def reader_settings(self) -> Mapping[str, Any]:
        return {KIND: {}}


class QueueConnector(Connector):
    kind = KIND
    spark = f"{__name__}:QueueHalf"

    def executor(self, secrets: SecretReader, *, caller: Caller, client_id: str) -> CallExecutor:
        def execute(call: AsyncCall) -> Any:
            match call:
                case ListTapes():
                    return Discovered(split_ids=frozenset({QUEUE}))
                case FindTapes(split_ids=split_ids):
                    return [TapeSplit(name=str(name)) for _, name in split_ids]
            return None

        return execute

    def identity_of(self, call: AsyncCall) -> Identity:
        return NamedSecrets()


class QueueSplitReader(SplitReader[Handed, TapeSplit]):
    """Fetches what is in the queue, up to the stop of the split."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._split: TapeSplit | None = None
        self._held: set[str] = set()

    def fetch(self) -> RecordsBySplits[Handed]:
        if (split := self._split) is None:
            return RecordsBySplits({}, [])
        count = None if split.stop is None else split.stop - split.next
        found = self._queue.hand_out(split.next, self._held)[:count]
        self._held |= {name for _, name in found}
        self._split = split = split.at(split.next + len(found))
        done = [QUEUE] if split.stop == split.next else []
        return RecordsBySplits({QUEUE: found} if found else {}, done)

    def handle_splits_changes(self, change: SplitsChange[TapeSplit]) -> None:
        self._split = change.splits[0] if isinstance(change, SplitsAddition) else None

    def wake_up(self) -> None:
        """Never blocks."""

    def close(self) -> None:
        self._split = None


class QueueEmitter(RecordEmitter[Handed, str, list[TapeSplit]]):
    def emit_record(
        self, element: Handed, output: SourceOutput[str], split_state: list[TapeSplit]
    ) -> None:
        position, name = element
        output.collect(name)
        split_state[0] = split_state[0].at(position + 1)


class QueueReader(SourceReaderBase[Handed, str, TapeSplit, list[TapeSplit]]):
    def initialized_state(self, split: TapeSplit) -> list[TapeSplit]:
        return [split]

    def to_split(self, split_id: SplitId, state: list[TapeSplit]) -> TapeSplit:
        return state[0]


class QueueHalf(ReadersHalf[str, str, TapeSplit]):
    """The query's value is the folder of the queue."""

    reference = "the tests of Balanced Source"

    @property
    def is_replayable(self) -> bool:
        return False

    def options(self) -> tuple[Option, ...]:
        return (Option(name="folder", meaning="Of the queue.", is_required=True),)

    def read_options(self, options: Mapping[str, str]) -> str:
        return options["folder"]

    def schema(self, read: str) -> str:
        return "log STRING, number BIGINT, text STRING"

    def source(self, options: Mapping[str, str], choices: Choices) -> QueueSource:
        return QueueSource(assigner=choices.assigner)

    def split(
        self, split_id: SplitId, position: Position, attributes: Mapping[str, Json]
    ) -> TapeSplit:
        stop: Any = attributes.get(STOP)
        return TapeSplit(name=str(split_id[1]), next=int(position or 0), stop=stop)

    def reader(
        self, query: Query[str], settings: Mapping[str, Any], context: SourceReaderContext
    ) -> SourceReader[str, TapeSplit]:
        fetchers = InlineFetchers(lambda: QueueSplitReader(Queue(Path(query.read))))
        return QueueReader(context, fetchers, QueueEmitter())

    def rows(self, records: Sequence[str]) -> pa.RecordBatch:
        count = len(records)
        numbers = pa.array([0] * count, pa.int64())
        return pa.RecordBatch.from_pydict(
            {"log": [KIND] * count, "number": numbers, "text": list(records)}
        )

    def hooks(self, context: PlannerContext[str]) -> ReaderHooks:
        return QueueHooks(Queue(Path(context.query.read)))


class QueueHooks(ReaderHooks):
    """Confirms what was delivered."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def note_delivered(self, delivered: StreamOffset) -> None:
        self._queue.confirm(int(delivered.positions.get(QUEUE) or 0))
