"""What people are told of records that are gone: which ones, and what they can do."""

from collections.abc import Callable
from typing import Any

import pytest

from balanced_source.api import Problem
from balanced_source.connectors.kafka import (
    Gap,
    OnDataLoss,
    SkipCounter,
    listed,
    log_truncated,
    topic_deleted,
    topic_recreated,
)
from balanced_source.connectors.kafka.data_loss import LISTED, topic_begun_late, topic_unread
from balanced_source.connectors.kafka.reasons import KafkaReason

A, B = ("c", "t", 0), ("c", "t", 1)
GAPS = [Gap(partition=2, start=5, end=9), Gap(partition=3, start=7, end=7)]

Make = Callable[[str, str, list[Gap], OnDataLoss], Problem]


@pytest.mark.parametrize(
    ("make", "reason", "happened", "stopped", "continues"),
    [
        (
            topic_recreated,
            KafkaReason.TOPIC_RECREATED,
            "topic t was deleted and created again. Unread records of the old topic are gone",
            "and a micro-batch that was planned with them ends the query at each start",
            "The new topic is read from its start",
        ),
        (
            topic_deleted,
            KafkaReason.TOPIC_RECREATED,
            "topic t was deleted before it was read to its stop offsets",
            "The source does not finish",
            "The source finishes without them",
        ),
        (
            log_truncated,
            KafkaReason.LOG_TRUNCATED,
            "the log of topic t was truncated",
            "and a micro-batch that was planned with them ends the query at each start",
            "The records that are available now are read",
        ),
    ],
)
def test_a_loss_says_what_happened_to_which_records_and_what_to_do(
    make: Make, reason: KafkaReason, happened: str, stopped: str, continues: str
) -> None:
    fails, goes_on = (make("c", "t", GAPS, policy) for policy in OnDataLoss)
    if not fails.is_fatal:
        fails, goes_on = goes_on, fails

    for problem in (fails, goes_on):
        assert problem.message.startswith(f"cluster c: {happened}")
        assert "partition 2 from offset 5 to 8. " in problem.message
        assert "partition 3" not in problem.message, "it was read to its end"
        assert (problem.reason, problem.scope) == (reason, "c")
    assert f"{stopped}. Set onDataLoss to Continue" in fails.message
    assert f"{continues}" in goes_on.message
    assert goes_on.message.endswith("(onDataLoss: Continue)")
    assert (fails.is_fatal, goes_on.is_fatal) == (True, False)


def test_a_topic_that_does_not_exist_any_more_was_not_created_again() -> None:
    gone = topic_recreated("c", "t", GAPS, OnDataLoss.FAIL, exists=False).message

    assert "topic t was deleted. Unread" in gone


@pytest.mark.parametrize(("topic_id", "named"), [("id7", "topic t (id id7)"), (None, "topic t ")])
def test_a_topic_is_named_with_its_id_where_that_is_known(topic_id: Any, named: str) -> None:
    texts = [
        topic_unread("cluster c", "t", topic_id, GAPS, exists=True),
        topic_unread("cluster c", "t", topic_id, GAPS, exists=False),
        topic_begun_late("cluster c", "t", topic_id, GAPS),
    ]

    assert all(named in text for text in texts)
    assert ["created again" in text for text in texts] == [True, False, False]
    assert all("partition 2 from offset 5 to 8" in text for text in texts)


def test_gaps_are_listed_one_by_one_up_to_a_number() -> None:
    many = [Gap(partition=number, start=0, end=1) for number in range(LISTED + 2)]

    assert listed([]) == listed([Gap(partition=0, start=5, end=5)]) == "none that is known"
    assert listed([Gap(partition=0, start=5)]) == "partition 0 from offset 5 on"
    assert listed([Gap(partition=0, start=5, end=6, topic="t")]) == (
        "topic t partition 0 from offset 5 to 5"
    )
    assert "more" not in listed(many[:LISTED])
    assert listed(many).endswith("; and 2 more partitions")
    assert listed(many).count(";") == LISTED


@pytest.mark.parametrize(("start", "end", "size"), [(5, 9, 4), (5, None, 0), (9, 5, 0), (5, 5, 0)])
def test_the_size_of_a_gap(start: int, end: int | None, size: int) -> None:
    assert Gap(partition=0, start=start, end=end).size == size


def test_each_missing_offset_is_counted_once() -> None:
    counter = SkipCounter()

    first = counter.note({A: (0, 10), B: (5, 9)}, {A: 4, B: 5})
    again = counter.note({A: (0, 10)}, {A: 4})
    later = counter.note({A: (0, 10), B: (5, 9)}, {A: 20})

    assert first == [Gap(topic="t", partition=0, start=0, end=4)]
    assert again == []
    assert later == [Gap(topic="t", partition=0, start=4, end=10)], "B is unknown: not counted"
    assert counter.total == 10
