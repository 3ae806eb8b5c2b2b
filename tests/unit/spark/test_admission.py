"""Limits of the source at the reader: when they wait, and what they let in."""

from collections.abc import Collection, Mapping

import pytest
from confluent_kafka import KafkaException

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import OnDataLoss, ReadLimits
from balanced_source.errors import RefusedDiscoveryError
from balanced_source_spark.kafka.admission import Admission
from balanced_source_spark.kafka.record_sizes import RecordSizes
from balanced_source_spark.options import parse_options

A: SplitId = ("c", "t", 0)
B: SplitId = ("c", "t", 1)


def no_sizes(*_: Collection[SplitId]) -> Mapping[SplitId, float]:
    raise AssertionError("sizes are asked for limits in bytes only")


def test_ends_continue_from_the_positions_of_the_splits() -> None:
    admission = Admission(no_sizes, clock=lambda: 0.0)

    ends = admission.cap({A: 100, B: 7}, {A: 1000, B: 9}, ReadLimits(max_records=50), may_wait=True)

    assert ends == {A: 148, B: 9}


def test_the_delay_begins_again_with_each_micro_batch_that_has_records() -> None:
    now = [0.0]
    admission, limits = (
        Admission(no_sizes, clock=lambda: now[0]),
        ReadLimits(min_records=10, max_delay=60),
    )
    now[0] = 60.0
    admission.cap({A: 0, B: 0}, {A: 20, B: 0}, limits, may_wait=True)

    now[0] = 119.0
    held = {A: 20, B: 0}
    assert admission.cap(held, {A: 25, B: 0}, limits, may_wait=True) == held
    now[0] = 120.0
    assert admission.cap(held, {A: 25, B: 0}, limits, may_wait=True) == {A: 25, B: 0}


def test_too_few_records_wait_until_the_delay_has_passed_since_the_last_micro_batch() -> None:
    now = [0.0]
    admission, limits = (
        Admission(no_sizes, clock=lambda: now[0]),
        ReadLimits(min_records=10, max_delay=60),
    )

    assert admission.cap({A: 0}, {A: 5}, limits, may_wait=True) == {A: 0}
    now[0] = 60.0
    assert admission.cap({A: 0}, {A: 5}, limits, may_wait=True) == {A: 5}
    now[0] = 61.0
    assert admission.cap({A: 5}, {A: 9}, limits, may_wait=True) == {A: 5}
    assert admission.cap({A: 5}, {A: 15}, limits, may_wait=True) == {A: 15}


def test_a_query_that_ends_by_itself_does_not_wait() -> None:
    admission = Admission(no_sizes, clock=lambda: 0.0)

    assert admission.cap({A: 0}, {A: 5}, ReadLimits(min_records=10), may_wait=False) == {A: 5}


def test_bytes_are_counted_by_samples_of_the_topic() -> None:
    asked: list[SplitId] = []

    def sample(split_id: SplitId, _offset: int) -> float:
        asked.append(split_id)
        return 100.0

    admission = Admission(RecordSizes(sample))

    for _ in range(3):
        assert admission.cap(
            {A: 0, B: 0}, {A: 99, B: 99}, ReadLimits(max_bytes=1000), may_wait=True
        ) == {A: 5, B: 5}
    assert len(asked) == 1, "one sample per topic, good for a minute"


@pytest.mark.parametrize(
    "error", [LookupError("no Secret"), RefusedDiscoveryError("no"), KafkaException("down")]
)
def test_a_sample_that_cannot_be_taken_ends_no_query(error: Exception) -> None:
    """The limit in bytes has to do without; it is asked again in a minute."""

    def sample(_split_id: SplitId, _offset: int) -> float:
        raise error

    admission = Admission(RecordSizes(sample))

    assert (
        admission.cap({A: 0}, {A: 99}, ReadLimits(max_bytes=1000, max_records=7), may_wait=True)[A]
        <= 7
    )


def test_the_options_of_spark_s_own_source_are_understood() -> None:
    options = parse_options(
        {
            "kafka.bootstrap.servers": "b:1",
            "subscribe": "t",
            "maxOffsetsPerTrigger": "100",
            "minOffsetsPerTrigger": "10",
            "maxTriggerDelay": "5m",
            "failOnDataLoss": "false",
        }
    )

    assert options.embedded is not None
    assert options.embedded.limits == ReadLimits(max_records=100, min_records=10, max_delay=300)
    assert options.embedded.on_data_loss is OnDataLoss.CONTINUE


def test_sizes_are_asked_for_splits_with_records_to_read_only() -> None:
    asked: list[Mapping[SplitId, int]] = []

    def sizes(
        positions: Mapping[SplitId, int], held: Collection[SplitId]
    ) -> Mapping[SplitId, float]:
        asked.append(positions)
        assert list(held) == [A, B]
        return dict.fromkeys(positions, 10.0)

    admission = Admission(sizes, clock=lambda: 0.0)

    ends = admission.cap({A: 100, B: 7}, {A: 199, B: 7}, ReadLimits(max_bytes=500), may_wait=True)

    assert ends == {A: 150, B: 7}
    assert asked == [{A: 100}]


def test_an_end_before_the_position_takes_nothing_from_the_others() -> None:
    """The log was cut, or the answer is an old one."""
    admission = Admission(no_sizes, clock=lambda: 0.0)

    ends = admission.cap({A: 100, B: 7}, {A: 90, B: 9}, ReadLimits(max_records=9), may_wait=True)

    assert ends == {A: 100, B: 9}


def test_a_query_that_ends_by_itself_does_not_wait_for_more_records() -> None:
    """One that does not move has ended."""
    admission, limits = Admission(no_sizes, clock=lambda: 0.0), ReadLimits(min_records=10)

    assert admission.cap({A: 0}, {A: 5}, limits, may_wait=False) == {A: 5}
