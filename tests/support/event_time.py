"""Readers that say what the test tells them to, in a real `ReaderGroup`.

For alignment, idleness and watermarks.
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from balanced_source.api import (
    InputStatus,
    ReaderOutput,
    SourceOutput,
    SourceReader,
    SourceReaderContext,
    SplitId,
)
from balanced_source.documents.assignment import Assignment
from balanced_source.testing.alignment import AlignmentGroup
from balanced_source.testing.reader_group import ReaderGroup
from support.numbers import NumbersSplit
from support.numbers_source import NumbersSource

Saying = Callable[[ReaderOutput[str]], None]


class ScriptedReader(SourceReader[str, NumbersSplit]):
    """Says one thing per poll."""

    def __init__(self) -> None:
        self.script: deque[Saying] = deque()
        self.splits: dict[SplitId, NumbersSplit] = {}
        self.paused: set[SplitId] = set()
        self.is_closed = False
        self.gets_more = True

    def start(self) -> None:
        pass

    def poll_next(self, output: ReaderOutput[str]) -> InputStatus:
        for split_id in self.splits:
            output.create_output_for_split(split_id)
        if self.script:
            self.script.popleft()(output)
            return InputStatus.MORE_AVAILABLE
        return (
            InputStatus.NOTHING_AVAILABLE
            if self.gets_more or self.splits
            else InputStatus.END_OF_INPUT
        )

    def snapshot_state(self, checkpoint_id: int) -> Sequence[NumbersSplit]:
        return tuple(self.splits.values())

    def add_splits(self, splits: Sequence[NumbersSplit]) -> None:
        self.splits.update((s.split_id, s) for s in splits)

    def remove_splits(self, split_ids: Collection[SplitId]) -> Sequence[NumbersSplit]:
        self.paused.difference_update(split_ids)
        return [self.splits.pop(s) for s in split_ids if s in self.splits]

    def pause_or_resume_splits(
        self, to_pause: Collection[SplitId], to_resume: Collection[SplitId]
    ) -> None:
        assert self.paused.isdisjoint(to_pause), "told twice"
        assert self.paused.issuperset(to_resume), "told to go on without having been told to wait"
        self.paused = (self.paused | set(to_pause)) - set(to_resume)

    def notify_no_more_splits(self) -> None:
        self.gets_more = False

    def close(self) -> None:
        self.is_closed = True


@dataclass(frozen=True)
class ScriptedSource(NumbersSource):
    """Makes scripted readers, and remembers them."""

    ranges: tuple[NumbersSplit, ...] = ()
    readers: dict[int, ScriptedReader] = field(default_factory=dict, compare=False)

    def create_reader(self, context: SourceReaderContext) -> Any:
        return self.readers.setdefault(context.subtask_id, ScriptedReader())


class Readers:
    """A group of readers with one split each unless `owners` says otherwise.

    Verbs return it; nouns tell what is.

    Args:
        owners: split's name → its reader.
        aligned: the alignment group that they are in.
        idle_timeout: seconds.
    """

    def __init__(
        self,
        owners: Mapping[str, int],
        aligned: AlignmentGroup[object],
        *,
        idle_timeout: float | None = None,
    ) -> None:
        self.aligned = aligned
        self.source = ScriptedSource()
        self.now = 0.0
        self.epoch = 0
        self.records: list[str] = []
        self.group: ReaderGroup[str] = ReaderGroup(
            source=self.source,
            create_reader=self.source.create_reader,
            incarnation=1,
            collect=lambda _, record, __: self.records.append(record),
            alignment=aligned,
            idle_timeout=idle_timeout,
        )
        self.owners: dict[str, int] = {}
        self.assigned(owners)

    def assigned(
        self, owners: Mapping[str, int], *, readers: int = 0, no_more: Collection[int] = ()
    ) -> Self:
        """A further assignment is adopted; nothing is read in between."""
        self.epoch += 1
        self.owners = dict(owners)
        ids = {name: (name,) for name in owners}
        document = Assignment(
            epoch=self.epoch,
            parallelism=readers or max(owners.values(), default=0) + 1,
            incarnations={"0": 1},
            owners={ids[name]: owner for name, owner in owners.items()},
            starts={ids[name]: 0 for name in owners},
            attributes={ids[name]: {"stop": 10} for name in owners},
            no_more_splits=frozenset(no_more),
        )
        self.group.on_assignment(document)
        self.group.checkpoint(lambda _: None)
        return self

    def says(self, **watermarks: int) -> Self:
        """Splits tell their watermarks, all in one poll."""
        for name, watermark in watermarks.items():
            self._output(name, lambda output, w=watermark: output.emit_watermark(w))
        return self.poll()

    def is_idle(self, *names: str) -> Self:
        for name in names:
            self._output(name, lambda output: output.mark_idle())
        return self.poll()

    def gets_record(self, name: str) -> Self:
        """A record that moves no watermark."""
        self._output(name, lambda output: output.collect(name))
        return self.poll()

    def finishes(self, name: str) -> Self:
        reader = self.reader(name)
        del reader.splits[(name,)]
        reader.script.append(lambda output: output.release_output_for_split((name,)))
        return self.poll()

    def poll(self, *, after: float = 0.0, is_held_up: bool = False) -> Self:
        """Seconds pass, and all readers are asked."""
        self.now += after
        self.group.poll(now=self.now, is_held_up=is_held_up)
        return self

    def reader(self, name: str) -> ScriptedReader:
        return self.source.readers[self.owners[name]]

    @property
    def limit(self) -> int:
        """How far the members of the alignment group may go."""
        return self.aligned.max_allowed

    @property
    def paused(self) -> set[str]:
        return {str(s[0]) for reader in self.source.readers.values() for s in reader.paused}

    @property
    def idle(self) -> set[str]:
        """Splits that are not waited for at present."""
        outputs = [entry.output for entry in self.group._readers.values()]
        return {
            str(s[0])
            for out in outputs
            for s in out.split_watermarks()
            if out.watermarks.is_idle_part(s)
        }

    def _output(self, name: str, act: Callable[[SourceOutput[str]], None]) -> None:
        self.reader(name).script.append(lambda output: act(output.create_output_for_split((name,))))
