"""What one consumer fetches ahead is bounded, however many splits it reads."""

import pytest

from balanced_source.connectors.kafka import KafkaPartitionSplit
from balanced_source.connectors.kafka.split import split_of
from balanced_source.errors import ContractViolationError
from balanced_source_spark.kafka.settings import PREFETCH, RangeReaderSettings, bounds


@pytest.mark.parametrize("splits", [1, 2, 8, 64, 1000])
@pytest.mark.parametrize("queue_per_split", [False, True])
def test_a_consumer_fetches_at_most_its_share_ahead_and_uses_half_of_it(
    splits: int, queue_per_split: bool
) -> None:
    found = bounds(splits, PREFETCH, queue_per_split=queue_per_split)

    queues = found["queued.max.messages.kbytes"] * 1024 * (splits if queue_per_split else 1)
    on_their_way = found["max.partition.fetch.bytes"] * splits
    assert queues + on_their_way <= PREFETCH
    assert queues >= PREFETCH // 2 * 0.95


def test_many_splits_still_fetch_handfuls_of_records() -> None:
    found = bounds(100_000, PREFETCH, queue_per_split=True)

    assert found == {"queued.max.messages.kbytes": 16, "max.partition.fetch.bytes": 16 << 10}


def test_one_more_split_needs_another_consumer_only_at_powers_of_two() -> None:
    def consumer(splits: int) -> object:
        return RangeReaderSettings(cluster="c", config={}, splits=splits).consumer(
            queue_per_split=True
        )

    assert consumer(0) == consumer(1) == dict(bounds(1, PREFETCH, queue_per_split=True))
    assert consumer(33) == consumer(64) != consumer(32)


def test_settings_of_the_user_win() -> None:
    settings = RangeReaderSettings(cluster="c", config={"max.partition.fetch.bytes": 7})

    assert settings.consumer(queue_per_split=False)["max.partition.fetch.bytes"] == 7


def test_only_a_numbered_partition_at_a_number_is_a_split() -> None:
    assert split_of(("c", "t", 3), 5, {}) == KafkaPartitionSplit(
        cluster="c", topic="t", partition=3, offset=5
    )
    for split_id, offset in ((("c", "t", "3"), 5), (("c", "t", 3), None)):
        with pytest.raises(ContractViolationError, match="is not a partition of a topic"):
            split_of(split_id, offset, {})
