"""Retention that moves between the look at what there is and the read.

Every record that is left, once.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa
import pytest

from balanced_source.api import SplitId
from balanced_source.host import SplitRange
from balanced_source_spark.kafka.settings import (
    LogRewrittenError,
    OffsetsLostError,
    RangeReaderSettings,
)
from balanced_source_spark.kafka.skipping import Skip, read_what_is_left

A, B = ("c", "t", 0), ("c", "t", 1)
RANGES = [SplitRange(split_id=A, start=0, end=6), SplitRange(split_id=B, start=0, end=4)]


class Log:
    """A broker whose retention moves while it is read.

    Before the batch with a number, partitions begin later.
    """

    def __init__(self, moves: Mapping[int, Mapping[SplitId, int]]) -> None:
        self.begin: dict[SplitId, int] = {A: 0, B: 0}
        self._moves = dict(moves)
        self._number = 0

    def begins(self, split_ids: Collection[SplitId]) -> Mapping[SplitId, int]:
        return {s: self.begin[s] for s in split_ids if s in self.begin}

    def read(
        self, ranges: Sequence[SplitRange], settings: RangeReaderSettings
    ) -> Iterator[pa.RecordBatch]:
        """A batch for each two offsets, partitions in turn."""
        left = {piece.split_id: piece for piece in ranges}
        at = {s: int(piece.start or 0) for s, piece in left.items()}
        while at:
            for split_id in list(at):
                self.begin |= self._moves.pop(self._number, {})
                self._number += 1
                start = at[split_id]
                if start < self.begin[split_id]:
                    raise OffsetsLostError(f"{split_id}: {start} is gone")
                stop = min(start + 2, int(left[split_id].end or 0))
                yield batch(split_id, range(start, stop), settings.columns)
                at[split_id] = stop
                if stop == left[split_id].end:
                    del at[split_id]


def batch(split_id: SplitId, offsets: range, columns: Sequence[str]) -> pa.RecordBatch:
    values = {
        "topic": [split_id[1]] * len(offsets),
        "partition": [split_id[2]] * len(offsets),
        "offset": list(offsets),
        "value": [f"{split_id[2]}-{offset}" for offset in offsets],
    }
    return pa.record_batch({name: values[name] for name in columns})


def nothing(skipped: Sequence[SplitRange]) -> None:
    assert not skipped


def read(log: Log, skip: Skip = lambda _: None) -> list[str]:
    settings = RangeReaderSettings(cluster="c", config={}, columns=("value",))
    batches = list(read_what_is_left(RANGES, settings, begins=log.begins, read=log.read, skip=skip))
    assert {tuple(b.schema.names) for b in batches} <= {("value",)}, (
        "columns that only tell the progress"
    )
    return sorted(value for b in batches for value in b["value"].to_pylist())


def values(a: range, b: range) -> list[str]:
    return [f"0-{offset}" for offset in a] + [f"1-{offset}" for offset in b]


def test_nothing_moves() -> None:
    assert read(Log({})) == values(range(6), range(4))


@pytest.mark.parametrize(
    ("moves", "want"),
    [
        pytest.param({0: {A: 3}}, values(range(3, 6), range(4)), id="before the first record"),
        pytest.param(
            {1: {B: 1}}, values(range(6), range(1, 4)), id="after records of another partition"
        ),
        pytest.param(
            {2: {A: 5}}, ["0-0", "0-1", "0-5", *values(range(0), range(4))], id="in the middle"
        ),
        pytest.param(
            {0: {A: 1}, 1: {A: 2, B: 2}}, values(range(2, 6), range(2, 4)), id="again and again"
        ),
        pytest.param({1: {B: 9}}, values(range(6), range(0)), id="beyond the range"),
    ],
)
def test_remaining_records_are_read_once(
    moves: dict[int, dict[SplitId, int]], want: list[str]
) -> None:
    skipped: list[SplitRange] = []

    assert read(Log(moves), skipped.extend) == want
    gone = [f"{p.split_id[2]}-{n}" for p in skipped for n in range(p.start or 0, p.end or 0)]
    assert sorted(want + gone) == values(range(6), range(4)), "planning is told of all others, once"


def test_skipped_records_are_reported(capfd: pytest.CaptureFixture[str]) -> None:
    read(Log({2: {A: 5}}))

    assert "topic t partition 0 from offset 2 to 4" in "".join(capfd.readouterr())


def test_an_error_that_a_kept_consumer_still_holds_does_not_count() -> None:
    """The failed attempt gives its consumer up; the next one reads what is there."""
    log, errors = Log({}), [OffsetsLostError("of its former position")]

    def once_lost(
        ranges: Sequence[SplitRange], settings: RangeReaderSettings
    ) -> Iterator[pa.RecordBatch]:
        if errors:
            raise errors.pop()
        yield from log.read(ranges, settings)

    settings = RangeReaderSettings(cluster="c", config={}, columns=("value",))
    batches = list(
        read_what_is_left(RANGES, settings, begins=log.begins, read=once_lost, skip=nothing)
    )
    assert sorted(v for b in batches for v in b["value"].to_pylist()) == values(range(6), range(4))


def test_a_loss_that_retention_does_not_explain_fails() -> None:
    def lost(*_: object) -> Iterator[pa.RecordBatch]:
        raise OffsetsLostError("gone")
        yield

    settings = RangeReaderSettings(cluster="c", config={}, columns=("value",))
    with pytest.raises(OffsetsLostError, match="gone"):
        list(read_what_is_left(RANGES, settings, begins=Log({}).begins, read=lost, skip=nothing))


def test_partitions_that_are_gone_are_skipped() -> None:
    log = Log({})
    del log.begin[B]

    skipped: list[SplitRange] = []
    assert read(log, skipped.extend) == values(range(6), range(0))
    assert skipped == [SplitRange(split_id=B, start=0, end=4)]


class Rewritten(Log):
    """A broker whose first partition's log was cut at offset 3 and rewritten by a new leader."""

    def __init__(self) -> None:
        super().__init__({})

    def read(
        self, ranges: Sequence[SplitRange], settings: RangeReaderSettings
    ) -> Iterator[pa.RecordBatch]:
        for piece in ranges:
            start, end = int(piece.start or 0), int(piece.end or 0)
            if piece.split_id == A and end > 3:
                yield batch(A, range(start, 1), settings.columns)
                raise LogRewrittenError("cut", cuts={("t", 0): 3})
            yield batch(piece.split_id, range(start, end), settings.columns)


def test_records_before_the_cut_are_delivered_and_those_that_took_the_place_of_others_are_not() -> (
    None
):
    assert read(Rewritten()) == values(range(3), range(4))
