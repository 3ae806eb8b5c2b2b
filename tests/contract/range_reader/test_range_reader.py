"""What every reader of exact offset ranges must do, at a real broker.

Each test is a trap that a reader fell into.

All compare sets of (partition, offset) with what is in the log: a count would hide a loss that a
repetition makes up.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from balanced_source.connectors.kafka import KafkaCluster as ClusterSpec
from balanced_source.connectors.kafka import OnDataLoss
from balanced_source.errors import BalancedSourceError
from balanced_source.host import SplitRange
from balanced_source_adapters.kafka.admin import KafkaAdmin
from balanced_source_spark.kafka.same_topics import SameTopics
from balanced_source_spark.kafka.settings import (
    LogRewrittenError,
    OffsetsLostError,
    ReadStalledError,
)
from balanced_source_spark.kafka.topic_watch import TopicWatch
from testbed.kafka import KafkaCluster
from testbed.waiting import wait_until

from .conftest import Reader, exactly

pytestmark = pytest.mark.integration


# --- exact ranges ---------------------------------------------------------------------------------


def test_ranges_of_several_partitions(reader: Reader) -> None:
    for partition, count in enumerate((5000, 1, 700)):
        reader.produce(count, partition=partition)
    ranges = {0: (100, 4900), 1: (0, 1), 2: (699, 700)}

    assert reader.offsets(ranges) == exactly(ranges)


def test_the_range_ends_in_the_middle_of_a_batch_of_the_producer(reader: Reader) -> None:
    """The broker delivers whole batches.

    What lies before the start and behind the end must not come out.
    """
    reader.produce(
        1000, **{"linger.ms": 500, "batch.num.messages": 1000, "compression.type": "gzip"}
    )
    ranges = {0: (333, 334)}

    assert reader.offsets(ranges) == exactly(ranges)


def test_offsets_grow_within_a_split(reader: Reader) -> None:
    for partition in range(3):
        reader.produce(3000, partition=partition)

    rows = reader.rows(dict.fromkeys(range(3), (0, 3000)))

    for partition in range(3):
        assert [r["offset"] for r in rows if r["partition"] == partition] == list(range(3000))


def test_an_empty_range_gives_no_rows(reader: Reader) -> None:
    assert reader.rows({}) == []


# --- one reader after another in one process ------------------------------------------------------


def test_records_fetched_past_the_end_belong_to_the_next_range(reader: Reader) -> None:
    """A consumer that is kept has already taken messages past the end of a range.

    3–7 % of all rows were lost so.
    """
    reader.produce(20_000)
    edges = [0, 1, 2, 100, 101, 2500, 2501, 9000, 9999, 20_000]
    ranges = [{0: (a, b)} for a, b in itertools.pairwise(edges)]

    assert reader.offsets(*ranges) == exactly({0: (0, 20_000)})


def test_a_replay_goes_back(reader: Reader) -> None:
    reader.produce(3000)
    late, early = {0: (2500, 3000)}, {0: (0, 10)}

    assert reader.offsets(late) == exactly(late)
    assert reader.offsets(early) == exactly(early)
    assert reader.offsets(late) == exactly(late)


def test_a_partition_that_was_finished_is_not_silent_afterwards(reader: Reader) -> None:
    """The client library remembers a pause beyond the assignment, even through another one."""
    for partition in range(2):
        reader.produce(100, partition=partition)
    first, between, second = {0: (0, 50), 1: (0, 100)}, {1: (0, 100)}, {0: (50, 100)}

    assert reader.offsets(first) == exactly(first)
    assert reader.offsets(between) == exactly(between)
    assert reader.offsets(second) == exactly(second)


def test_splits_come_and_go_between_uses(reader: Reader) -> None:
    """A consumer is kept for a configuration, not for a set of splits."""
    for partition in range(3):
        reader.produce(300, partition=partition)
    uses = [{0: (0, 300)}, {1: (0, 150), 2: (0, 300)}, {1: (150, 300)}]

    assert reader.offsets(*uses) == exactly(dict.fromkeys(range(3), (0, 300)))


def test_two_readers_of_one_process_do_not_share_a_consumer(reader: Reader) -> None:
    for partition in range(2):
        reader.produce(6000, partition=partition)
    both = [reader.batches({partition: (0, 6000)}) for partition in range(2)]

    seen: Counter[tuple[int, int]] = Counter()
    for pair in itertools.zip_longest(*both):
        seen.update(
            (r["partition"], r["offset"])
            for batch in pair
            if batch is not None
            for r in batch.to_pylist()
        )

    assert seen == exactly({0: (0, 6000), 1: (0, 6000)})


def test_a_reader_that_was_given_up_leaves_nothing_behind(reader: Reader) -> None:
    """A task that is killed, or a limit: the next use begins where it is told to."""
    reader.produce(10_000)
    abandoned = reader.batches({0: (0, 10_000)})
    next(abandoned)
    abandoned.close()  # type: ignore[attr-defined] # what Spark does to a generator

    assert reader.offsets({0: (0, 10_000)}) == exactly({0: (0, 10_000)})


def test_partitions_that_were_added_since_are_found(reader: Reader) -> None:
    """A consumer that is kept has not heard of them."""
    reader.produce(10)
    assert reader.offsets({0: (0, 10)}) == exactly({0: (0, 10)})
    reader.kafka.admin.add_partitions(reader.topic, 5)
    reader.produce(10, partition=4)
    ranges = {0: (5, 10), 4: (0, 10)}

    assert reader.offsets(ranges) == exactly(ranges)


def test_a_topic_that_was_made_since_is_found(reader: Reader) -> None:
    reader.produce(10)
    assert reader.offsets({0: (0, 10)}) == exactly({0: (0, 10)})
    other = f"{reader.topic}-later"
    reader.kafka.admin.create_topic(other)
    reader.kafka.admin.produce(other, [b"x"], partition=0)

    assert [row["topic"] for row in reader.rows({0: (0, 1)}, other)] == [other]


# --- offsets that are never delivered -------------------------------------------------------------


def test_a_marker_at_the_end_of_a_range_that_ends_the_log(reader: Reader) -> None:
    """A range ends by offset or by the end of the partition, never by counting."""
    reader.transaction(10)
    assert reader.end() == 11

    assert reader.offsets({0: (0, 11)}) == exactly({0: (0, 10)})
    assert reader.offsets({0: (10, 11)}) == Counter()


def test_a_marker_at_the_end_of_a_range_inside_the_log(reader: Reader) -> None:
    for _ in range(3):
        reader.transaction(10)

    assert reader.offsets({0: (0, 11)}) == exactly({0: (0, 10)})
    assert reader.offsets({0: (10, 12)}) == exactly({0: (11, 12)})
    assert reader.offsets({0: (10, 11)}) == Counter()


def test_aborted_transactions_are_skipped(reader: Reader) -> None:
    reader.transaction(5)  # 0 … 4, marker 5
    reader.transaction(5, commit=False)  # 6 … 10, marker 11
    reader.transaction(5)  # 12 … 16, marker 17

    assert reader.offsets({0: (0, 18)}) == exactly({0: (0, 5)}) + exactly({0: (12, 17)})
    assert reader.offsets({0: (6, 12)}) == Counter()
    assert reader.offsets({0: (7, 13)}) == exactly({0: (12, 13)})


def test_a_range_of_nothing_but_aborted_records_ends_with_the_log(reader: Reader) -> None:
    reader.produce(3)
    reader.transaction(2000, commit=False)

    assert reader.offsets({0: (3, reader.end())}) == Counter()
    assert reader.offsets({0: (0, reader.end())}) == exactly({0: (0, 3)})


def test_uncommitted_records_are_read_if_requested(reader: Reader) -> None:
    reader.transaction(5, commit=False)
    reader.properties["isolation.level"] = "read_uncommitted"

    assert reader.offsets({0: (0, 6)}) == exactly({0: (0, 5)})


def test_an_open_transaction_ends_the_readable_range(reader: Reader) -> None:
    """Planning ends a range at the last stable offset.

    There the broker says that the partition ends.
    """
    reader.produce(5)
    producer = reader.open_transaction(5)

    assert reader.offsets({0: (0, 5)}) == exactly({0: (0, 5)})

    producer.commit_transaction()
    wait_until(lambda: reader.end() == 11, 30, "the marker of the transaction")
    assert reader.offsets({0: (5, 11)}) == exactly({0: (5, 10)})


def test_gaps_of_compaction(reader: Reader, kafka: KafkaCluster) -> None:
    """Nearly everything is gone, also what lay at the start and at the end of ranges."""
    eager = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.001",
        "delete.retention.ms": "0",
    }
    reader.topic = f"{reader.topic}-compacted"
    kafka.admin.create_topic(reader.topic, config=eager)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(100):
        producer.produce(reader.topic, key=str(number % 10), value=str(number), partition=0)
    producer.flush(30)

    closing = itertools.count()

    def compacted() -> bool:
        """Close a segment that is old enough, with a key of its own.

        What is left afterwards stays.
        """
        producer.produce(reader.topic, key=f"closing {next(closing)}", value="x", partition=0)
        producer.flush(30)
        return not reader.offsets({0: (0, 90)})

    wait_until(compacted, 60, "compaction", interval=0.3)
    kept = reader.offsets({0: (0, reader.end())})
    assert kept == exactly({0: (90, reader.end())})

    assert reader.offsets({0: (0, 50)}) == Counter()
    assert reader.offsets({0: (50, 91)}) == exactly({0: (90, 91)})
    assert reader.offsets({0: (0, 90)}, {0: (90, reader.end())}) == kept


# --- what is lost is said -------------------------------------------------------------------------


def test_records_that_were_deleted_before_they_were_read(reader: Reader) -> None:
    reader.produce(100)
    reader.kafka.admin.delete_records(reader.topic, {0: 50})

    with pytest.raises(
        OffsetsLostError, match=rf"topic {reader.topic}, partition 0: offset 0 does not exist"
    ):
        reader.rows({0: (0, 100)})

    assert reader.offsets({0: (50, 100)}) == exactly({0: (50, 100)})


def test_records_of_a_later_leader_are_not_those_that_were_planned(reader: Reader) -> None:
    """A log of leader epoch 0, and a micro-batch that was planned before it."""
    reader.produce(10)
    assert len(reader.rows({0: (0, 5)}, term=0)) == 5

    with pytest.raises(
        LogRewrittenError, match=rf"topic {reader.topic}, partition 0: .*offset 5 is"
    ) as raised:
        reader.rows({0: (5, 10)}, term=-1)

    assert raised.value.cuts == {(reader.topic, 0): 5}
    with pytest.raises(LogRewrittenError, match="offset 9 is"):
        reader.rows({0: (9, 10)}, term=-1)
    assert len(reader.rows({0: (5, 10)})) == 5, "an end without a term is not checked"


def test_a_recreated_topic_is_shorter(reader: Reader) -> None:
    reader.produce(100)

    with pytest.raises(OffsetsLostError, match="or the topic was recreated"):
        reader.rows({0: (150, 200)})


def test_a_topic_that_is_gone(reader: Reader) -> None:
    reader.produce(100)
    reader.kafka.admin.delete_topic(reader.topic)
    reader.stall = 5

    with pytest.raises(BalancedSourceError, match="cluster main"):
        reader.rows({0: (0, 100)})


def test_a_topic_that_is_deleted_while_it_is_read(reader: Reader) -> None:
    """It waits for records that never come: half of those that were planned are there."""
    reader.produce(40_000)
    admin = KafkaAdmin()
    cluster = ClusterSpec(name="main", bootstrap_servers=reader.kafka.bootstrap)
    identity = admin.ask_topic_ids(cluster, [reader.topic])()[reader.topic]
    topics = SameTopics(
        cluster="main",
        ask=partial(admin.ask_topic_ids, cluster),
        policy=OnDataLoss.FAIL,
        missing=0.5,
        watch=TopicWatch(look_after=0.1, look_every=0.1),
    )
    settings = reader.settings()
    piece = SplitRange(split_id=("main", reader.topic, 0), start=0, end=80_000, identity=identity)

    def read(kept: Sequence[SplitRange]) -> Iterator[pa.RecordBatch]:
        batches = reader.read(kept, settings)
        yield next(batches)
        reader.kafka.admin.delete_topic(reader.topic)
        yield from batches

    with pytest.raises(OffsetsLostError, match=rf"topic {reader.topic} was deleted\."):
        list(topics.read([piece], read, settings.interrupt))
    admin.close()


def test_a_broker_that_is_gone_for_good(reader: Reader) -> None:
    reader.bootstrap = "127.0.0.1:1"
    reader.stall = 1

    with pytest.raises(ReadStalledError, match=r"nothing arrived for 1 s; waiting for 1 range,"):
        reader.rows({0: (0, 10)})


# --- the broker goes and comes back: last, because other tests share it ---------------------------


def test_a_broker_that_comes_back(reader: Reader, kafka: KafkaCluster) -> None:
    reader.produce(60_000, **{"compression.type": "none"})
    reader.stall = 60
    reading = reader.batches({0: (0, 60_000)})
    seen = Counter((r["partition"], r["offset"]) for r in next(reading).to_pylist())

    kafka.kill()
    kafka.start_node()

    seen.update((r["partition"], r["offset"]) for batch in reading for r in batch.to_pylist())
    assert seen == exactly({0: (0, 60_000)})


def test_a_topic_that_was_created_again_after_changes_of_its_leader(
    reader: Reader, kafka: KafkaCluster
) -> None:
    """Its leader epochs begin again, and a consumer that was kept knows greater ones."""
    reader.produce(20)
    kafka.kill()
    kafka.start_node()
    former = kafka.admin.topic_id(reader.topic)
    assert len(reader.rows({0: (0, 20)}, identity=former)) == 20

    kafka.admin.delete_topic(reader.topic)
    kafka.admin.create_topic(reader.topic, partitions=3)
    reader.produce(20)
    reader.stall = 20

    rows = reader.rows({0: (0, 20)}, identity=kafka.admin.topic_id(reader.topic))
    assert [row["offset"] for row in rows] == list(range(20))
