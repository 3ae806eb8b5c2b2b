"""A connector over numbers: a split is a range of them. For tests of the reader's side."""

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from balanced_source.api import (
    BoundedSplit,
    Position,
    RecordEmitter,
    SourceOutput,
    SourceReaderContext,
    SplitId,
    SplitReader,
    SplitsAddition,
    SplitsChange,
)
from balanced_source.reader import Fetchers, RecordsBySplits, SourceReaderBase
from balanced_source.testing.source_reader import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class NumbersSplit(BoundedSplit):
    """From `next` up to but without `stop`."""

    name: str
    next: int = 0
    stop: int = 10

    @property
    def split_id(self) -> SplitId:
        return (self.name,)

    @property
    def position(self) -> Position:
        return self.next

    @property
    def stopping_position(self) -> Position:
        return self.stop

    def at(self, position: Position) -> Self:
        return replace(self, next=position)

    def attributes(self) -> Mapping[str, Any]:
        return {"stop": self.stop}


@dataclass
class NumbersReader(SplitReader[int, NumbersSplit]):
    """Brings at most `chunk` numbers of each split at a time; blocks while `gate` is closed.

    Attributes:
        calls: what was called, in order.
    """

    chunk: int = 3
    fail_at: int | None = None
    gate: threading.Event | None = None
    splits: dict[SplitId, NumbersSplit] = field(default_factory=dict)
    paused: set[SplitId] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    is_closed: bool = False
    _woken: threading.Event = field(default_factory=threading.Event)

    def fetch(self) -> RecordsBySplits[int]:
        self.calls.append("fetch")
        if self.gate is not None:
            while not (self.gate.wait(0.005) or self._woken.is_set()):
                pass
            if not self.gate.is_set():
                self._woken.clear()
                return RecordsBySplits()
        records, finished = {}, []
        for split_id, split in list(self.splits.items()):
            if split_id in self.paused:
                continue
            upto = min(split.stop, split.next + self.chunk)
            if self.fail_at is not None and split.next <= self.fail_at < upto:
                raise OSError(f"cannot read {self.fail_at}")
            records[split_id] = range(split.next, upto)
            self.splits[split_id] = split.at(upto)
            if upto >= split.stop:
                finished.append(split_id)
                del self.splits[split_id]
        return RecordsBySplits(records, finished)

    def handle_splits_changes(self, change: SplitsChange[NumbersSplit]) -> None:
        for split in change.splits:
            self.calls.append(
                f"{'add' if isinstance(change, SplitsAddition) else 'remove'} {split.name}"
            )
            self.paused.discard(split.split_id)
            if isinstance(change, SplitsAddition):
                assert split.split_id not in self.splits
                self.splits[split.split_id] = split
            else:
                self.splits.pop(split.split_id, None)

    def pause_or_resume_splits(
        self, to_pause: Collection[NumbersSplit], to_resume: Collection[NumbersSplit]
    ) -> None:
        self.paused |= {s.split_id for s in to_pause}
        self.paused -= {s.split_id for s in to_resume}

    def wake_up(self) -> None:
        self._woken.set()

    def close(self) -> None:
        assert not self.is_closed
        self.is_closed = True


@dataclass
class State:
    """Of one split."""

    split: NumbersSplit


class Emitter(RecordEmitter[int, tuple[str, int], State]):
    """A record is (split's name, number); its timestamp and watermark are the number."""

    def emit_record(
        self, element: int, output: SourceOutput[tuple[str, int]], split_state: State
    ) -> None:
        assert element == split_state.split.next, (
            f"{element} comes where {split_state.split} is due"
        )
        output.collect((split_state.split.name, element), element)
        output.emit_watermark(element)
        split_state.split = split_state.split.at(element + 1)


class NumbersSourceReader(SourceReaderBase[int, tuple[str, int], NumbersSplit, State]):
    """Notes finished splits."""

    def __init__(
        self, fetchers: Fetchers[int, NumbersSplit], context: SourceReaderContext | None = None
    ) -> None:
        super().__init__(context or Context(), fetchers, Emitter())
        self.finished: list[SplitId] = []

    def initialized_state(self, split: NumbersSplit) -> State:
        return State(split)

    def to_split(self, split_id: SplitId, state: State) -> NumbersSplit:
        return state.split

    def on_splits_finished(self, finished: Mapping[SplitId, State]) -> None:
        self.finished += finished
