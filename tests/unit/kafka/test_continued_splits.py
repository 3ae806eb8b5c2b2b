"""What a source makes of the splits and clusters that a Spark checkpoint names."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import IDENTITY, STOP, SplitId
from balanced_source.connectors.kafka import (
    EARLIEST,
    LATEST,
    AtOffset,
    KafkaPartitionSplit,
    OffsetsInitializer,
    PerPartition,
    SkipCounter,
    TopicList,
)
from balanced_source.connectors.kafka.data_loss import CONSENT, KEPT, LISTED, Gap, listed
from balanced_source.connectors.kafka.offsets import NO_TOPIC_ID
from balanced_source.errors import ContractViolationError
from support.world import kafka_source

SOURCE = kafka_source(subscriber=TopicList(("t",)))
SPLIT = KafkaPartitionSplit(cluster="c", topic="t", partition=3, offset=5)


def at(offset: int) -> OffsetsInitializer:
    """Partition 3 ends there, and the others at the latest offset."""
    return PerPartition(listed={("t", 3): AtOffset(offset)}, default=LATEST)


@pytest.mark.parametrize("attributes", [{}, {STOP: 9, IDENTITY: "id"}, {IDENTITY: NO_TOPIC_ID}])
def test_a_split_is_made_of_what_it_says_of_itself(attributes: dict[str, Any]) -> None:
    made = SOURCE.create_split(("c", "t", 3), 5, attributes)

    topic_id = "id" if attributes.get(IDENTITY) == "id" else None
    assert made == replace(SPLIT, stopping_offset=attributes.get(STOP), topic_id=topic_id)
    assert SOURCE.create_split(made.split_id, made.position, made.attributes()) == made


@pytest.mark.parametrize(
    ("split_id", "position"), [(("c", "t", "3"), 5), (("c", "t", 3), None), (("c", "t", 3), "5")]
)
def test_what_is_no_partition_at_an_offset_is_refused(split_id: SplitId, position: Any) -> None:
    with pytest.raises(ContractViolationError, match="is not a partition of a topic"):
        SOURCE.create_split(split_id, position, {})


def test_a_split_moves_to_offsets_alone() -> None:
    assert SPLIT.at(5) is SPLIT
    assert SPLIT.at(6) == replace(SPLIT, offset=6)
    for position in (None, "6"):
        with pytest.raises(ContractViolationError, match="is no offset"):
            SPLIT.at(position)


@pytest.mark.parametrize(
    ("stop", "chosen", "says"),
    [
        (None, None, ""),
        (9, at(9), ""),
        (9, LATEST, ""),
        (9, at(8), "has offset 9 as the end of c/t/3, and the options ask for offset 8"),
        (9, None, "has offset 9 as the end of c/t/3, and the options ask for no end"),
        (None, at(9), "has no end as the end of c/t/3, and the options ask for offset 9"),
        (None, LATEST, "has no end as the end of c/t/3, and the options ask for another end"),
    ],
)
def test_the_end_of_a_continued_query_cannot_change(
    stop: int | None, chosen: OffsetsInitializer | None, says: str
) -> None:
    split = replace(SPLIT, stopping_offset=stop)
    of_source = replace(SOURCE, stopping_offsets=chosen)
    of_cluster = replace(SOURCE, clusters=(replace(SOURCE.clusters[0], stopping_offsets=chosen),))

    for source in (of_source, of_cluster):
        why = source.why_not_continued(split)
        assert says in why
        assert bool(why) is bool(says)


@pytest.mark.parametrize("place", [{"cluster": "gone"}, {"topic": "gone"}])
def test_a_split_that_leaves_may_have_any_end(place: dict[str, str]) -> None:
    leaves = replace(SPLIT, stopping_offset=9, **place)

    assert SOURCE.why_not_continued(replace(SPLIT, stopping_offset=9))
    assert SOURCE.why_not_continued(leaves) == ""


def test_a_cluster_that_is_not_read_cannot_be_asked() -> None:
    paused = replace(SOURCE, inactive=kafka_source("paused").clusters)

    assert (paused.scopes(), paused.paused_scopes()) == (("c",), {"paused"})
    assert paused.reader_settings()["kafka"]["clusters"].keys() == {"c", "paused"}
    for name in ("paused", "other"):
        with pytest.raises(ContractViolationError, match=f"'{name}' is not part of the source"):
            paused.discover(name, 1)
        with pytest.raises(ContractViolationError, match=f"'{name}' is not part of the source"):
            paused.initialize(name, [], is_first=True)


def test_the_advice_for_a_recreated_topic_names_the_policy() -> None:
    assert SOURCE.recreation_advice() == CONSENT
    assert SOURCE.starting_offsets == EARLIEST


def test_partitions_that_left_are_forgotten_once_they_are_many() -> None:
    """Those that are held stay known: what was counted of them is not counted twice."""
    split_ids: list[SplitId] = [("c", "t", number) for number in range(KEPT + 1)]
    held, begins = split_ids[:1], dict.fromkeys(split_ids, 4)
    counter = SkipCounter()

    counter.note(dict.fromkeys(split_ids[:KEPT], (0, 10)), begins)
    counter.keep(held)
    assert counter.note({split_ids[1]: (0, 10)}, begins) == [], "not yet"
    counter.note({split_ids[KEPT]: (0, 10)}, begins)
    counter.keep(split_ids[: KEPT // 2 + 1])
    assert counter.note({split_ids[KEPT]: (0, 10)}, begins) == [], "half of them are held"
    counter.keep(held)

    assert counter.note({split_ids[0]: (0, 10)}, begins) == []
    assert counter.note({split_ids[1]: (0, 10)}, begins) == [
        Gap(topic="t", partition=1, start=0, end=4)
    ]


def test_gaps_that_are_only_counted_are_said_to_be_more() -> None:
    gaps = [Gap(partition=number, start=0, end=1) for number in range(LISTED)]

    assert listed(gaps, 3).endswith("; and 3 more partitions")
    assert "more" not in listed(gaps, 0)
    assert listed([*gaps, Gap(partition=99, start=0)], 3).endswith("; and 4 more partitions")
