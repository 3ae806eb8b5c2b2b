"""The source reader that most connectors extend.

Records from split readers, positions, finished splits.

Pure: whether threads drive the split readers is the business of the `Fetchers` that it gets.
Everything here is called by the host's one thread.
"""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Generic, TypeVar

from balanced_source.api import (
    InputStatus,
    ReaderOutput,
    RecordEmitter,
    RecordsWithSplitIds,
    SourceOutput,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
    SplitId,
)
from balanced_source.errors import ContractViolationError
from balanced_source.reader.fetching import Fetched, Fetchers

E = TypeVar("E")
T = TypeVar("T")
SplitT = TypeVar("SplitT", bound=SourceSplit)
StateT = TypeVar("StateT")


class SourceReaderBase(SourceReader[T, SplitT], Generic[E, T, SplitT, StateT]):
    """See the module. `StateT` is what the emitter moves on: a small mutable object per split.

    Args:
        context: of the reader.
        fetchers: drive the split readers.
        emitter: turns fetched elements into records.
    """

    def __init__(
        self,
        context: SourceReaderContext,
        fetchers: Fetchers[E, SplitT],
        emitter: RecordEmitter[E, T, StateT],
    ) -> None:
        self.context = context
        self._fetchers = fetchers
        self._emitter = emitter
        self._states: dict[SplitId, StateT] = {}
        self._without_output: set[SplitId] = set()
        self._generations: dict[SplitId, int] = {}
        self._last_generation = 0
        self._fetched: Fetched[E] | None = None
        self._current: SplitId | None = None
        self._output: SourceOutput[T] | None = None
        self._gets_more = True
        self._drained: set[SplitId] = set()
        self._brought: set[SplitId] = set()
        self._added: set[SplitId] = set()

    # --- what a connector adds --------------------------------------------------------------------

    @abstractmethod
    def initialized_state(self, split: SplitT) -> StateT:
        """State of a split that is about to be read. Called by `add_splits`, once per addition."""

    @abstractmethod
    def to_split(self, split_id: SplitId, state: StateT) -> SplitT:
        """The split at the position behind what was emitted.

        Called by `snapshot_state` and `remove_splits`.
        """

    def on_splits_finished(self, finished: Mapping[SplitId, StateT]) -> None:
        """Called once for splits whose last record was emitted.

        A pull-based reader asks for more work here.
        """

    # --- SourceReader -----------------------------------------------------------------------------

    def start(self) -> None:
        """Nothing to do for a reader whose enumerator pushes."""

    def poll_next(self, output: ReaderOutput[T]) -> InputStatus:
        # Before anything is emitted: the watermark must wait for splits that nothing was read of
        # yet.
        self._create_outputs(output)
        if (self._fetched is not None or self._take()) and self._emit_next(output):
            return InputStatus.MORE_AVAILABLE
        # come meanwhile, or next after a fetch that brought nothing
        if self._fetchers.has_result():
            return InputStatus.MORE_AVAILABLE
        if self._gets_more or self._states or not self._fetchers.is_idle():
            return InputStatus.NOTHING_AVAILABLE
        return InputStatus.END_OF_INPUT

    def is_available(self) -> bool:
        """Whether `poll_next` would find something now."""
        return self._fetched is not None or self._fetchers.has_result()

    def is_drained(self, split_id: SplitId) -> bool:
        return split_id in self._drained

    def snapshot_state(self, checkpoint_id: int) -> Sequence[SplitT]:
        return tuple(self.to_split(split_id, state) for split_id, state in self._states.items())

    def snapshot_split(self, split_id: SplitId) -> SplitT | None:
        state = self._states.get(split_id)
        return None if state is None else self.to_split(split_id, state)

    def add_splits(self, splits: Sequence[SplitT]) -> None:
        self._last_generation += 1
        for split in splits:
            if split.split_id in self._states:
                raise ContractViolationError(
                    f"reader {self.context.subtask_id} has split {split.split_id} already"
                )
            self._states[split.split_id] = self.initialized_state(split)
            self._added.add(split.split_id)
            self._without_output.add(split.split_id)
            self._generations[split.split_id] = self._last_generation
        self._fetchers.add_splits(tuple(splits), self._last_generation)

    def remove_splits(self, split_ids: Collection[SplitId]) -> Sequence[SplitT]:
        known = [split_id for split_id in split_ids if split_id in self._states]
        # What was fetched already is dropped by its generation, and comes from the next reader.
        self._fetchers.remove_splits(known)
        return tuple(self.to_split(split_id, self._forget(split_id)) for split_id in known)

    def pause_or_resume_splits(
        self, to_pause: Collection[SplitId], to_resume: Collection[SplitId]
    ) -> None:
        self._fetchers.pause_or_resume_splits(
            [s for s in to_pause if s in self._states], [s for s in to_resume if s in self._states]
        )

    def notify_no_more_splits(self) -> None:
        self._gets_more = False

    def close(self) -> None:
        self._fetchers.close()

    # --- one fetch after another ------------------------------------------------------------------

    def _create_outputs(self, output: ReaderOutput[T]) -> None:
        """So that the watermark waits for splits of which nothing was read yet.

        Their records would come late.
        """
        for split_id in self._without_output:
            output.create_output_for_split(split_id)
        self._without_output.clear()

    def _take(self) -> bool:
        self._fetched = self._fetchers.poll()
        self._current = None
        self._brought.clear()
        return self._fetched is not None

    def _emit_next(self, output: ReaderOutput[T]) -> bool:
        """Emit one element of the present fetch; False when it was gone through to its end."""
        assert self._fetched is not None  # noqa: S101 - the caller has looked
        records = self._fetched.records
        while self._current is not None or self._next_split(output):
            # Records of an earlier addition belong to no one: the split may be another reader's by
            # now.
            element = records.next_record_from_split() if self._is_mine(self._current) else None
            if element is not None and self._current is not None and self._output is not None:
                self._emitter.emit_record(element, self._output, self._states[self._current])
                return True
            self._current = None
        self._finish(output)
        return False

    def _next_split(self, output: ReaderOutput[T]) -> bool:
        assert self._fetched is not None  # noqa: S101 - the caller has looked
        self._current = self._fetched.records.next_split()
        # Dropped, as records of a split that was taken away are, they would be lost in silence.
        if self._current is not None and self._current not in self._added:
            raise ContractViolationError(
                f"fetch returned records of split {self._current}, which this reader was never"
                " given"
            )
        if self._current is not None and self._is_mine(self._current):
            self._output = output.create_output_for_split(self._current)
            self._brought.add(self._current)
            self._drained.discard(self._current)
        return self._current is not None

    def _is_mine(self, split_id: SplitId | None) -> bool:
        """Whether what was fetched for a split belongs to its present addition."""
        if split_id is None or self._fetched is None:
            return False
        return self._fetched.generations.get(split_id) == self._generations.get(split_id, 0)

    def _finish(self, output: ReaderOutput[T]) -> None:
        assert self._fetched is not None  # noqa: S101 - the caller has looked
        silent = self._fetched.generations.keys() - self._brought
        self._drained.update(s for s in silent if self._is_mine(s))
        finished = [
            split_id
            for split_id in sorted(self._fetched.records.finished_splits())
            if self._is_mine(split_id)
        ]
        # Only where buffers are used again: small batches of rows cost time.
        if type(self._fetched.records).recycle is not RecordsWithSplitIds.recycle:
            output.flush()
        self._fetched.records.recycle()
        self._fetched = None
        if finished:
            # No one must wait for the watermark of a split that has ended.
            for split_id in finished:
                output.release_output_for_split(split_id)
            self.on_splits_finished({split_id: self._forget(split_id) for split_id in finished})

    def _forget(self, split_id: SplitId) -> StateT:
        del self._generations[split_id]
        self._without_output.discard(split_id)
        self._drained.discard(split_id)
        return self._states.pop(split_id)
