"""What every `SparkHalf` must do: a half whose tasks get ranges.

The suite reads ranges as tasks do. It needs what the half itself needs, such as pyarrow, but no
query.
"""

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from balanced_source.api import SplitId
from balanced_source.host import SplitRange
from balanced_source.testing.planner_hooks import PlannerHooksContract

Row = Mapping[str, Any]


class RangesHalfContract(PlannerHooksContract):
    """Derive, implement the hooks, and name the class ``Test…``."""

    def partition(self, ranges: tuple[SplitRange, ...]) -> Any:
        """A `ReaderPartition` with these ranges, and with what `Source.reader_settings` returns."""
        raise NotImplementedError

    def ranges(self) -> Sequence[SplitRange]:
        """Whole splits, two or more, each with two records or more."""
        raise NotImplementedError

    def rows(self, whole: SplitRange) -> Sequence[Row]:
        """The rows of a whole split: column → value, in their order."""
        raise NotImplementedError

    def cuts(self, whole: SplitRange) -> Sequence[int]:
        """Positions between start and end at which a whole split may be cut."""
        return range(int(whole.start or 0) + 1, int(whole.end or 0))

    def test_every_record_of_a_range_comes_once_in_its_order(self) -> None:
        for whole in self.ranges():
            assert self._read(whole) == list(self.rows(whole))

    def test_a_task_that_runs_again_reads_the_same(self) -> None:
        """Retries, speculative copies and further actions get the same partition."""
        first, second = self._read(*self.ranges()), self._read(*self.ranges())

        assert first == second == [row for whole in self.ranges() for row in self.rows(whole)]

    def test_tasks_can_unpickle_what_makes_their_reader(self) -> None:
        made = self.half().task_reader(self.query())
        whole = self.ranges()[0]
        partition = self.partition((whole,))
        again, same = pickle.loads(pickle.dumps((made, partition)))  # noqa: S301 - its own bytes

        assert _listed(again().read(same)) == list(self.rows(whole))

    def test_a_range_can_be_cut_anywhere(self) -> None:
        """A micro-batch ends where the split ended then, and long ranges are shared out."""
        for whole in self.ranges():
            for cut in self.cuts(whole):
                first, second = _cut(whole, cut)
                assert [*self._read(first), *self._read(second)] == list(self.rows(whole)), cut

    def test_nothing_comes_of_no_range_or_an_empty_one(self) -> None:
        whole = self.ranges()[0]

        assert self._read() == []
        assert self._read(_cut(whole, int(whole.start or 0))[0]) == []

    def test_all_batches_have_the_same_columns(self) -> None:
        """Also those of ranges without rows, whose values say nothing about the types."""
        whole = self.ranges()
        cut = [part for one in whole for at in self.cuts(one) for part in _cut(one, at)]
        schemas = [batch.schema for one in (*whole, *cut) for batch in self._batches(one)]

        assert schemas[0].names == list(self.rows(whole[0])[0])
        assert all(schema.equals(schemas[0]) for schema in schemas), "same names, order and types"

    def _settings(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.partition(()).settings
        return found

    def _bounds(self) -> Mapping[SplitId, tuple[int, int]]:
        return {
            whole.split_id: (int(whole.start or 0), int(whole.end or 0)) for whole in self.ranges()
        }

    def _batches(self, *ranges: SplitRange) -> Any:
        return self.half().task_reader(self.query())().read(self.partition(ranges))

    def _read(self, *ranges: SplitRange) -> list[Row]:
        return _listed(self._batches(*ranges))


def _listed(batches: Any) -> list[Row]:
    return [row for batch in batches for row in batch.to_pylist()]


def _cut(whole: SplitRange, at: int) -> tuple[SplitRange, SplitRange]:
    return replace(whole, end=at), replace(whole, start=at)
