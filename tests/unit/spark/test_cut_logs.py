"""A log that was cut after a micro-batch was planned, and has no new records there yet."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from balanced_source.api import SplitId
from balanced_source.errors import BalancedSourceError, TransientDiscoveryError
from balanced_source.host import SplitRange
from balanced_source.host.ends import Mark, SplitEnd
from balanced_source_spark.kafka.cut_logs import read_unless_cut
from balanced_source_spark.kafka.settings import (
    LogRewrittenError,
    OffsetsLostError,
    RangeReaderSettings,
    ReadStalledError,
)
from balanced_source_spark.kafka.skipping import read_what_is_left

A, B, C = ("c", "t", 0), ("c", "t", 1), ("c", "t", 2)
RANGES = [
    SplitRange(split_id=split_id, start=4, end=9, identity="id", term=3) for split_id in (A, B, C)
]
SETTINGS = RangeReaderSettings(cluster="c", config={}, columns=("offset",))


class Brokers:
    """Logs that end somewhere; a read waits for what is not there."""

    def __init__(self, failure: BalancedSourceError, **cuts: int) -> None:
        self.failure = failure
        self.cuts = {{"a": A, "b": B, "c": C}[name]: cut for name, cut in cuts.items()}
        self.silent: set[SplitId] = set()
        self.marks: Mapping[SplitId, Mark] = {}
        self.reads: list[list[tuple[SplitId, int, int]]] = []

    def ends(
        self, split_ids: Collection[SplitId], marks: Mapping[SplitId, Mark]
    ) -> Mapping[SplitId, SplitEnd]:
        self.marks = marks
        found = {
            s: SplitEnd(end=20, checked=marks[s], cut=self.cuts.get(s))
            for s in split_ids
            if s not in self.silent
        }
        if self.silent:
            raise TransientDiscoveryError("no answer", answers=found)
        return found

    def read(
        self, ranges: Sequence[SplitRange], settings: RangeReaderSettings
    ) -> Iterator[pa.RecordBatch]:
        self.reads.append([(r.split_id, int(r.start or 0), int(r.end or 0)) for r in ranges])
        for piece in ranges:
            start, end = int(piece.start or 0), int(piece.end or 0)
            there = range(start, min(end, self.cuts.get(piece.split_id, end)))
            if there:
                values = {
                    "topic": ["t"] * len(there),
                    "partition": [piece.split_id[2]] * len(there),
                    "offset": list(there),
                }
                yield pa.record_batch({name: values[name] for name in settings.columns})
        if any(int(piece.end or 0) > self.cuts.get(piece.split_id, 99) for piece in ranges):
            raise self.failure

    def read_unless_cut(
        self, ranges: Sequence[SplitRange], settings: RangeReaderSettings
    ) -> Iterator[pa.RecordBatch]:
        return read_unless_cut(ranges, settings, read=self.read, ends=self.ends)


FAILURES = pytest.mark.parametrize(
    "failure", [ReadStalledError("nothing arrived"), OffsetsLostError("out of range")]
)


@FAILURES
def test_a_read_that_gets_nothing_says_that_the_log_was_cut(failure: BalancedSourceError) -> None:
    brokers = Brokers(failure, b=6)
    with pytest.raises(LogRewrittenError) as caught:
        list(brokers.read_unless_cut(RANGES, SETTINGS))

    assert str(caught.value) == (
        "cluster c, topic t, partition 1: the log was cut at offset 6 after this micro-batch was"
        " planned, by an unclean leader election or a restored disk"
    )
    assert caught.value.cuts == {("t", 1): 6}
    assert brokers.marks[B] == Mark(position=9, term=3, identity="id")


@FAILURES
def test_with_consent_the_rest_of_the_micro_batch_is_delivered(
    failure: BalancedSourceError, capfd: pytest.CaptureFixture[str]
) -> None:
    """All cut logs are found at once: to wait for each of them would take minutes."""
    brokers = Brokers(failure, b=6, c=2)
    rows = [
        (row["partition"], row["offset"])
        for batch in read_what_is_left(
            RANGES,
            replace(SETTINGS, columns=("partition", "offset")),
            begins=lambda split_ids: dict.fromkeys(split_ids, 0),
            read=brokers.read_unless_cut,
            skip=lambda _: None,
        )
        for row in batch.to_pylist()
    ]

    assert rows == [(0, n) for n in range(4, 9)] + [(1, 4), (1, 5)]
    assert len(brokers.reads) <= 2
    said = "".join(capfd.readouterr())
    assert "partition 1: up to offset 8 nothing is delivered in this micro-batch" in said
    assert "partition 2: up to offset 8 nothing is delivered in this micro-batch" in said


@FAILURES
def test_a_cluster_that_keeps_a_task_waiting_for_another_reason(
    failure: BalancedSourceError,
) -> None:
    brokers = Brokers(failure, a=6)
    brokers.cuts[A] = 9
    brokers.silent = {B}

    def never(*_: object) -> Iterator[pa.RecordBatch]:
        raise failure
        yield

    with pytest.raises(type(failure)) as caught:
        list(read_unless_cut(RANGES, SETTINGS, read=never, ends=brokers.ends))
    assert caught.value is failure


def test_some_partitions_may_answer() -> None:
    brokers = Brokers(ReadStalledError("nothing arrived"), b=6)
    brokers.silent = {A}
    with pytest.raises(LogRewrittenError, match="partition 1"):
        list(brokers.read_unless_cut(RANGES, SETTINGS))


def test_a_read_that_was_interrupted_asks_no_one() -> None:
    brokers = Brokers(ReadStalledError("interrupted"), b=6)
    settings = replace(SETTINGS)
    settings.interrupt.set()
    with pytest.raises(ReadStalledError, match="interrupted"):
        list(brokers.read_unless_cut(RANGES, settings))
    assert brokers.marks == {}
