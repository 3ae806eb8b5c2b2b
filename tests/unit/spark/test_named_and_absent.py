"""A query that ends by itself, and a topic that the user names and that does not exist."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from balanced_source.connectors.kafka import LATEST, TopicList
from balanced_source.documents.stream_offset import FINISHED
from balanced_source.errors import FatalProblemError
from balanced_source_spark.options import Options
from support.planned_query import PlannedQuery
from support.world import Broker, kafka_source

SAYS: Final = r"^topic oders does not exist on cluster c: create it, or correct the subscription$"


def naming(*topics: str, is_bounded: bool = False) -> PlannedQuery:
    """A query over topic orders with 5 records, and other names."""
    broker = Broker(is_bounded=is_bounded)
    broker.create("c", "orders", [0], end=5)
    source = kafka_source(
        "c",
        subscriber=TopicList(topics),
        stopping_offsets=LATEST if is_bounded else None,
        discovery_interval=None if is_bounded else 0.05,
    )
    options = Options(start_timeout=5.0, embedded=source)
    return PlannedQuery(source=source, broker=broker, options=options)


def is_closed(query: PlannedQuery) -> bool:
    return bool(query.offsets and query.offsets[-1].get(FINISHED))


def _to_its_end(query: PlannedQuery) -> None:
    query.trigger_until(lambda: False, "the error")


ENDS: Final[dict[str, Callable[[PlannedQuery], Any]]] = {
    "available now": PlannedQuery.available_now,
    "bounded": _to_its_end,
}


@pytest.mark.parametrize("how", ENDS)
def test_it_reads_the_other_topic_and_then_says_what_is_missing(how: str) -> None:
    query = naming("orders", "oders", is_bounded=how == "bounded")

    with pytest.raises(FatalProblemError, match=SAYS):
        ENDS[how](query)

    assert query.records.total() == 5
    query.close()


@pytest.mark.parametrize("how", ENDS)
def test_it_ends_in_order_if_all_is_there(how: str) -> None:
    query = naming("orders", is_bounded=how == "bounded")

    if how == "bounded":
        query.trigger_until(lambda: is_closed(query), "its end")
    else:
        query.available_now()

    assert query.records.total() == 5
    query.close()


def test_a_single_micro_batch_reads_nothing_of_half_of_what_is_named() -> None:
    """No other micro-batch follows that could say it, and a batch query cannot take rows back."""
    query = naming("orders", "oders")

    with pytest.raises(FatalProblemError, match=SAYS):
        query.once()

    assert not query.offsets
    query.close()


def test_a_topic_that_comes_late_is_read_to_its_end() -> None:
    query = naming("orders", "oders", is_bounded=True)
    query.channel._confirm = 60.0
    query.trigger_until(lambda: query.records.total() == 5, "the topic that is there")

    query.broker.create("c", "oders", [0], end=2)
    query.trigger_until(lambda: is_closed(query), "its end")

    assert query.records.total() == 7
    query.close()
