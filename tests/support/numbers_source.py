"""A whole source over numbers, whose readers pull.

Each asks for its next range when it has finished one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from balanced_source.api import (
    Boundedness,
    Position,
    RebalanceCause,
    Source,
    SourceEvent,
    SourceReaderContext,
    SplitEnumerator,
    SplitEnumeratorContext,
    SplitId,
    SplitsAssignment,
)
from balanced_source.reader import Threading
from balanced_source.testing.inline_fetchers import InlineFetchers
from support.numbers import NumbersReader, NumbersSplit, State
from support.numbers import NumbersSourceReader as BaseReader

NumbersState = tuple[NumbersSplit, ...]
"""Splits that no one has."""


@dataclass(frozen=True)
class NumbersSource(Source[NumbersSplit, NumbersState]):
    """Ranges, given out one by one."""

    ranges: tuple[NumbersSplit, ...]
    threading: Threading = Threading.ONE_AFTER_ANOTHER
    chunk: int = 3
    log: list[str] = field(default_factory=list, compare=False)
    """What source events said, and who asked from where."""

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, context: SplitEnumeratorContext[NumbersSplit]) -> "PullEnumerator":
        return PullEnumerator(context, self, self.ranges)

    def restore_enumerator(
        self, context: SplitEnumeratorContext[NumbersSplit], state: NumbersState
    ) -> "PullEnumerator":
        return PullEnumerator(context, self, state)

    def create_reader(self, context: SourceReaderContext) -> "PullReader":
        fetchers = InlineFetchers(lambda: NumbersReader(chunk=self.chunk), self.threading)
        return PullReader(context, fetchers, self.log)

    def create_split(
        self, split_id: SplitId, position: Position, attributes: Mapping[str, Any]
    ) -> NumbersSplit:
        return NumbersSplit(
            name=str(split_id[0]), next=int(position or 0), stop=int(attributes["stop"])
        )

    @property
    def state_version(self) -> int:
        return 1

    def encode_state(self, state: NumbersState) -> Any:
        return [[s.name, s.next, s.stop] for s in state]

    def decode_state(self, version: int, data: Any) -> NumbersState:
        return tuple(NumbersSplit(name=name, next=at, stop=stop) for name, at, stop in data)


class PullEnumerator(SplitEnumerator[NumbersSplit, NumbersState]):
    """Gives one split per request; asks each reader for its name when it registers."""

    def __init__(
        self,
        context: SplitEnumeratorContext[NumbersSplit],
        source: NumbersSource,
        splits: Sequence[NumbersSplit],
    ) -> None:
        super().__init__(context)
        self.source = source
        self.splits = tuple(splits)

    def start(self) -> None:
        pass

    def add_reader(self, subtask_id: int) -> None:
        self.context.send_event_to_reader(subtask_id, SourceEvent(name="who are you?"))
        reported = self.context.registered_readers()[subtask_id].reported_splits
        known = {*self.context.current_assignments(), *(s.split_id for s in self.splits)}
        self.splits += tuple(s for s in reported if s.split_id not in known)

    def add_splits_back(self, splits: Sequence[NumbersSplit], subtask_id: int) -> None:
        back = {s.split_id for s in splits}
        self.splits = (*splits, *(s for s in self.splits if s.split_id not in back))

    def rebalance(self, cause: RebalanceCause) -> None:
        """What came back from readers that no longer exist.

        Those that are left may have asked for the last time.
        """
        readers = sorted(self.context.registered_readers())
        if cause is RebalanceCause.RESCALE and readers:
            shares = {
                reader: self.splits[number :: len(readers)] for number, reader in enumerate(readers)
            }
            self.context.assign_splits(
                SplitsAssignment(assignment={r: s for r, s in shares.items() if s})
            )
            self.splits = ()

    def handle_split_request(self, subtask_id: int, requester_hostname: str | None) -> None:
        self.source.log.append(f"{subtask_id} asks from {requester_hostname}")
        todo = [s for s in self.splits if not s.is_finished]
        if todo:
            self.splits = tuple(s for s in self.splits if s is not todo[0])
            self.context.assign_splits(SplitsAssignment(assignment={subtask_id: [todo[0]]}))
        else:
            self.context.signal_no_more_splits(subtask_id)

    def handle_source_event(self, subtask_id: int, event: SourceEvent) -> None:
        self.source.log.append(f"{subtask_id} says {event.payload}")

    def snapshot_state(self) -> NumbersState:
        return self.splits

    def is_finished(self) -> bool:
        return not self.splits


class PullReader(BaseReader):
    """Asks for work when it has none."""

    def __init__(self, context: SourceReaderContext, fetchers: Any, log: list[str]) -> None:
        super().__init__(fetchers)
        self.context = context
        self.log = log

    def start(self) -> None:
        self.context.send_split_request()

    def on_splits_finished(self, finished: Mapping[SplitId, State]) -> None:
        self.context.send_split_request()

    def handle_source_event(self, event: SourceEvent) -> None:
        self.log.append(f"{self.context.subtask_id} hears {event.name}")
        payload = f"reader {self.context.subtask_id}"
        self.context.send_source_event_to_coordinator(SourceEvent(name="I am", payload=payload))
