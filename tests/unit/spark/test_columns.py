"""The reference reader's rows, and the choice of columns."""

from types import SimpleNamespace

import pytest
from confluent_kafka import Message

from balanced_source.errors import InvalidSpecError
from balanced_source_spark.kafka import columns
from balanced_source_spark.kafka.chunk import Chunk
from balanced_source_spark.kafka.columns import TYPES, arrow_schema, record_batch
from balanced_source_spark.kafka.names import COLUMNS, PLAIN
from balanced_source_spark.kafka.schema import spark_schema
from balanced_source_spark.kafka.settings import UnreadableHeadersError
from balanced_source_spark.options import parse_options
from support.messages import message

EMBEDDED = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}


def test_every_name_has_its_types() -> None:
    assert tuple(TYPES) == COLUMNS
    assert spark_schema(COLUMNS).names == list(COLUMNS)


def test_rows_have_exactly_the_columns_that_were_asked_for() -> None:
    messages = [
        message(key=None, value=b"v", offset=7, headers=[("h", None)]),
        message(value=None, offset=8),
    ]

    every = record_batch(Chunk(messages), cluster="c", columns=tuple(TYPES))
    some = record_batch(Chunk(messages), cluster="c", columns=("offset", "value"))

    assert every.schema == arrow_schema(tuple(TYPES))
    assert every.column("headers").to_pylist() == [[{"key": "h", "value": None}], None]
    assert every.column("timestamp").cast("int64").to_pylist() == [1_700_000_000_123_000] * 2
    assert every.column("timestampType").to_pylist() == [0, 0]
    assert every.column("cluster").to_pylist() == ["c", "c"]
    assert some.to_pydict() == {"offset": [7, 8], "value": [b"v", None]}


def test_topics_may_differ_within_a_record_batch() -> None:
    messages = [message(topic="a"), message(topic="b"), message(topic="a")]

    assert record_batch(Chunk(messages), cluster="c").column("topic").to_pylist() == ["a", "b", "a"]


def test_no_messages_make_an_empty_batch_with_the_same_schema() -> None:
    assert record_batch(Chunk([]), cluster="c").schema == arrow_schema(PLAIN)


def test_columns_are_chosen_in_the_given_order() -> None:
    assert parse_options(EMBEDDED).read.columns == PLAIN
    assert "headers" in parse_options({**EMBEDDED, "includeHeaders": "true"}).read.columns
    assert parse_options({**EMBEDDED, "columns": "value, offset"}).read.columns == (
        "value",
        "offset",
    )


@pytest.mark.parametrize("value", ["values", "", "key,key"])
def test_a_wrong_choice_of_columns_is_named(value: str) -> None:
    with pytest.raises(InvalidSpecError, match=r"option columns"):
        parse_options({**EMBEDDED, "columns": value})


def test_headers_that_the_client_cannot_read_end_the_task_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Keys of headers are bytes to Kafka. The client raises, once, if they are not UTF-8."""
    errors = iter([SystemError("returned a result with an exception set")])

    def headers(read: Message) -> None:
        if read.offset() == 8 and (error := next(errors, None)) is not None:
            raise error

    monkeypatch.setattr(columns, "Message", SimpleNamespace(headers=headers))
    chunk = Chunk([message(offset=7), message(offset=8)])

    with pytest.raises(
        UnreadableHeadersError,
        match=r"topic t, partition 0, offset 8: .* not UTF-8.*Use the native reader",
    ):
        record_batch(chunk, cluster="c", columns=("offset", "headers"))
