"""A reader's output with one output per split, on three callables of the host."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from balanced_source.api import MIN_WATERMARK, ReaderOutput, SourceOutput, SplitId
from balanced_source.errors import ContractViolationError
from balanced_source.reader.watermarks import CombinedWatermark

T = TypeVar("T")

_READER: SplitId = ()
"""Part of the watermark for what the reader says as a whole."""


def _ignore(_: object) -> None:
    """For hosts without event time."""


def _nothing() -> None:
    """For hosts that keep no records."""


@dataclass(slots=True)
class SplitOutputs(ReaderOutput[T], Generic[T]):
    """See `ReaderOutput`.

    Attributes:
        on_record: gets each record with its timestamp.
        on_watermark: gets the combined watermark each time that it grows.
        on_idle: gets whether the reader is idle, each time that it changes.
        on_split: gets the split of each record that comes by the output of a split, before the
            record; None: not told.
        on_release: gets each split whose output is released, while its reader still has it.
        on_flush: see `ReaderOutput.flush`.
        watermarks: of all splits.
    """

    on_record: Callable[[T, int | None], None]
    on_watermark: Callable[[int], None] = _ignore
    on_idle: Callable[[bool], None] = _ignore
    on_split: Callable[[SplitId], None] | None = None
    on_release: Callable[[SplitId], None] = _ignore
    on_flush: Callable[[], None] = _nothing
    watermarks: CombinedWatermark[SplitId] = field(default_factory=CombinedWatermark)
    _outputs: dict[SplitId, "_SplitOutput[T]"] = field(default_factory=dict)
    _emitted: tuple[int, bool] = (MIN_WATERMARK, False)

    def create_output_for_split(self, split_id: SplitId) -> SourceOutput[T]:
        made = self._outputs.get(split_id)
        if made is None:
            made = self._outputs[split_id] = _SplitOutput(self, split_id)
            self.watermarks.add(split_id)
            self.tell()
        return made

    def release_output_for_split(self, split_id: SplitId) -> None:
        if (gone := self._outputs.pop(split_id, None)) is not None:
            self.on_release(split_id)
            gone.is_released = True
            self.watermarks.remove(split_id)
            self.tell()

    def flush(self) -> None:
        self.on_flush()

    def collect(self, record: T, timestamp: int | None = None) -> None:
        self.on_record(record, timestamp)

    def emit_watermark(self, watermark: int) -> None:
        self.watermarks.add(_READER)
        self.watermarks.update(_READER, watermark)
        self.tell()

    def mark_idle(self) -> None:
        self.watermarks.add(_READER)
        self.watermarks.mark_idle(_READER)
        self.tell()

    def mark_active(self) -> None:
        self.watermarks.add(_READER)
        self.watermarks.mark_active(_READER)
        self.tell()

    def split_watermarks(self) -> Mapping[SplitId, int]:
        """How far each split is that has an output; a split that is idle says where it stopped."""
        return {split_id: self.watermarks.of(split_id) for split_id in self._outputs}

    def activity(self) -> Mapping[SplitId, int]:
        """How often each split that has an output said something; see `SplitIdleness`."""
        return {split_id: output.activity for split_id, output in self._outputs.items()}

    def records(self) -> Mapping[SplitId, int]:
        """How many records came of each split that has an output."""
        return {split_id: output.records for split_id, output in self._outputs.items()}

    def mark_splits_idle(self, split_ids: Iterable[SplitId]) -> None:
        """The host found that nothing comes of these; as if they had said so themselves."""
        for split_id in split_ids:
            self.watermarks.mark_idle(split_id)
        self.tell()

    def tell(self) -> None:
        """Pass on what has changed."""
        (watermark, was_idle), now = self._emitted, self.watermarks
        self._emitted = (now.watermark, now.is_idle)
        if now.watermark > watermark:
            self.on_watermark(now.watermark)
        if now.is_idle != was_idle:
            self.on_idle(now.is_idle)


@dataclass(slots=True, eq=False)
class _SplitOutput(SourceOutput[T], Generic[T]):
    outputs: SplitOutputs[T]
    split_id: SplitId
    is_released: bool = False
    activity: int = 0
    records: int = 0

    def collect(self, record: T, timestamp: int | None = None) -> None:
        self._check()
        self.activity += 1
        self.records += 1
        # A record is a sign of life: others must wait for this split again.
        if self.outputs.watermarks.is_idle_part(self.split_id):
            self.mark_active()
        if self.outputs.on_split is not None:
            self.outputs.on_split(self.split_id)
        self.outputs.on_record(record, timestamp)

    def emit_watermark(self, watermark: int) -> None:
        self._check()
        self.activity += 1
        self.outputs.watermarks.update(self.split_id, watermark)
        self.outputs.tell()

    def mark_idle(self) -> None:
        self._check()
        self.outputs.watermarks.mark_idle(self.split_id)
        self.outputs.tell()

    def mark_active(self) -> None:
        self._check()
        self.activity += 1
        self.outputs.watermarks.mark_active(self.split_id)
        self.outputs.tell()

    def _check(self) -> None:
        if self.is_released:
            raise ContractViolationError(f"the output of split {self.split_id} was released")
