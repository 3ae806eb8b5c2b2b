"""What a task measures reaches the planning process, and nothing else does."""

import socket
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balanced_source.host import SplitRange
from balanced_source.host.reader_figures import TaskSample
from balanced_source_spark import task_samples
from balanced_source_spark.partition import ReaderPartition, SampleTarget
from balanced_source_spark.sample_collector import SampleCollector
from balanced_source_spark.skipped_ranges import ROOM, decoded_ranges, encoded_ranges, tell_skipped
from balanced_source_spark.task_samples import decoded, encoded, measuring

LOCAL = {"SPARK_LOCAL_IP": "127.0.0.1"}
BATCH = pa.record_batch({"value": pa.array([b"one", b"two"])})


class Clock:
    """Moves on by what is added."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


class Reader:
    """Delivers batches, each after a second."""

    def __init__(self, clock: Clock, batches: int, *, error: Exception | None = None) -> None:
        self._clock, self._batches, self._error = clock, batches, error

    def read(self, partition: ReaderPartition) -> Iterator[pa.RecordBatch]:
        for _ in range(self._batches):
            self._clock.now += 1
            yield BATCH
        if self._error is not None:
            raise self._error


@pytest.fixture
def collector() -> Iterator[SampleCollector]:
    made = SampleCollector(LOCAL)
    yield made
    made.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(task_samples, "time", made)
    return made


def partition(target: SampleTarget | None, reader: int = 3) -> ReaderPartition:
    piece = SplitRange(split_id=("k", "t", 0), start=5, end=12)
    return ReaderPartition(subtask_id=reader, ranges=(piece,), samples=target)


def test_time_in_the_source_and_time_behind_it_are_distinguished(
    collector: SampleCollector, clock: Clock
) -> None:
    for _ in measuring(lambda: Reader(clock, 2)).read(partition(collector.target)):
        clock.now += 10

    figures = collector.take()[3]
    assert (figures.records, figures.size) == (4, 2 * BATCH.nbytes)
    assert (figures.source, figures.downstream, figures.first) == (2, 20, 1)
    assert collector.speeds == {3: 7 / 22}


def test_a_failed_task_reports_no_figures(collector: SampleCollector, clock: Clock) -> None:
    reader = Reader(clock, 1, error=RuntimeError("gone"))

    with pytest.raises(RuntimeError, match="gone"):
        list(measuring(lambda: reader).read(partition(collector.target)))

    assert collector.take() == {}


def test_readers_that_are_gone_are_forgotten(collector: SampleCollector, clock: Clock) -> None:
    for reader in (0, 1):
        list(measuring(lambda: Reader(clock, 1)).read(partition(collector.target, reader)))

    assert collector.take().keys() == {0, 1}
    assert collector.take((0,)).keys() == {0}


def test_nothing_stops_a_task_whose_driver_is_gone(clock: Clock) -> None:
    collector = SampleCollector(LOCAL)
    target = collector.target
    collector.close()

    assert len(list(measuring(lambda: Reader(clock, 2)).read(partition(target)))) == 2
    assert collector.target is None
    assert list(measuring(lambda: Reader(clock, 2)).read(partition(None))) == [BATCH, BATCH]


def test_only_tasks_of_the_query_count(collector: SampleCollector) -> None:
    target = collector.target
    assert target is not None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for datagram in (b"", b"[]", b"\xff", encoded(TaskSample(reader=0), "guessed"), b"9" * 999):
            stranger.sendto(datagram, (target.host, target.port))

    assert collector.take() == {}


def test_without_an_address_of_the_driver_figures_stay_unknown() -> None:
    collector = SampleCollector({"SPARK_DRIVER_BIND_ADDRESS": "no such host.invalid"})

    assert collector.target is None
    assert collector.take() == {}


samples = st.builds(
    TaskSample,
    reader=st.integers(0, 10**6),
    extent=st.integers(0, 2**63 - 1),
    records=st.integers(0, 2**63 - 1),
    size=st.integers(0, 2**63 - 1),
    source=st.floats(0, 1e8).map(lambda t: round(t, 6)),
    downstream=st.floats(0, 1e8).map(lambda t: round(t, 6)),
    first=st.none() | st.floats(0, 1e8).map(lambda t: round(t, 6)),
)


@given(samples)
def test_a_sample_survives_encoding_and_decoding(sample: TaskSample) -> None:
    datagram = encoded(sample, "t" * 32)

    assert len(datagram) <= ROOM
    assert decoded(datagram, "t" * 32) == sample


@given(st.binary(max_size=2 * ROOM) | st.binary(min_size=56, max_size=56))
def test_nothing_malformed_is_taken_for_a_sample(rest: bytes) -> None:
    found = decoded(b"token" + rest, "token")

    assert found is None or decoded(encoded(found, "token"), "token") == found
    assert decoded(rest, "token") is None


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1.0, 1e9])
@pytest.mark.parametrize("which", ["source", "downstream"])
def test_times_are_finite_numbers(which: str, wrong: float) -> None:
    assert decoded(encoded(TaskSample(reader=0, **{which: wrong}), "t"), "t") is None


def test_a_range_of_any_length_has_a_sample() -> None:
    """Positions may be times with a sequence, of which each range is astronomically long."""
    found = decoded(encoded(TaskSample(reader=0, extent=2**70, records=5), "t"), "t")

    assert found == TaskSample(reader=0, extent=2**63 - 1, records=5)


def test_counts_are_not_negative() -> None:
    assert decoded(encoded(TaskSample(reader=0, records=-1), "t"), "t") is None


ranges = st.lists(
    st.builds(
        SplitRange,
        split_id=st.tuples(st.text(max_size=249), st.text(max_size=249), st.integers(0, 10**6)),
        start=st.integers(0, 2**63 - 1),
        end=st.integers(0, 2**63 - 1),
    ),
    max_size=30,
)


@given(ranges, st.sampled_from(["", "files"]))
def test_skipped_ranges_survive_encoding_and_decoding(found: list[SplitRange], part: str) -> None:
    target = SampleTarget(host="h", port=1, token="t" * 32, part=part)
    datagrams = list(encoded_ranges(target, found))
    back = [piece for one in datagrams for piece in decoded_ranges(one, target.token) or ()]

    inner = [replace(p, split_id=p.split_id[1:]) for p in back] if part else back
    assert inner == found
    assert all(one.split_id[0] == part for one in back if part)
    assert all(decoded(one, target.token) is None for one in datagrams), "none looks like a sample"


def test_skipped_ranges_are_divided_into_datagrams_that_networks_do_not_divide() -> None:
    found = [SplitRange(split_id=("c", "t" * 200, p), start=0, end=9) for p in range(50)]
    target = SampleTarget(host="h", port=1, token="t" * 32)
    datagrams = list(encoded_ranges(target, found))

    assert len(datagrams) > 5
    assert max(map(len, datagrams)) <= ROOM


@given(st.binary(max_size=100))
def test_nothing_malformed_is_taken_for_skipped_ranges(rest: bytes) -> None:
    assert decoded_ranges(rest, "token") is None
    found = decoded_ranges(b"tokenskipped:" + rest, "token")
    assert found is not None
    assert all(isinstance(piece.start, int) and isinstance(piece.end, int) for piece in found)


def test_planning_takes_what_tasks_have_skipped_once(collector: SampleCollector) -> None:
    piece = SplitRange(split_id=("c", "t", 0), start=3, end=8)
    tell_skipped(None, [piece])
    tell_skipped(collector.target, [piece])

    assert list(collector.skipped()) == [piece]
    assert list(collector.skipped()) == []
    collector.close()
    assert list(collector.skipped()) == []
