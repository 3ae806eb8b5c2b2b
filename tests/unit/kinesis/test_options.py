"""Options and fields of the Kinesis source: what they mean, and what is refused."""

from typing import Any

import pytest

from balanced_source.assigners import RoundRobinAssigner
from balanced_source.connectors.kinesis import KinesisSource, OnShardLoss, Server, Start, StartAt
from balanced_source.errors import InvalidSpecError
from balanced_source_operator.controller.translate import to_source
from balanced_source_operator.spec import parse_spec
from balanced_source_spark.kinesis.options import kinesis_source
from support.hostile import FULL_KINESIS

GIVEN = {"streams": "orders, clicks"}


def source(**given: str) -> KinesisSource:
    return kinesis_source(
        {**GIVEN, **{name.lower(): value for name, value in given.items()}}, RoundRobinAssigner()
    )


def test_defaults() -> None:
    made = source()

    assert made.streams == ("orders", "clicks")
    assert (made.start, made.server, made.on_loss, made.discovery_interval) == (
        Start(),
        Server(),
        OnShardLoss.FAIL,
        30.0,
    )


def test_everything_can_be_said() -> None:
    made = source(
        kinesisEndpoint="http://127.0.0.1:4567",
        kinesisRegion="eu-west-1",
        kinesisSecret="streams",
        onDataLoss="continue",
        discoveryInterval="2s",
        startingPosition="SEQUENCE_NUMBERS",
        startingSequenceNumbers='{"orders": {"shardId-000000000001": "12"}}',
    )

    assert made.server == Server(
        endpoint="http://127.0.0.1:4567",
        region="eu-west-1",
        secret="streams",  # noqa: S106 - a name
    )
    assert made.start == Start(
        at=StartAt.SEQUENCE_NUMBERS, sequences=(("orders", "shardId-000000000001", 12),)
    )
    assert (made.on_loss, made.discovery_interval) == (OnShardLoss.CONTINUE, 2.0)
    assert Start.from_json(made.start.to_json()) == made.start


@pytest.mark.parametrize(
    "text", ["2026-01-31T12:00:00Z", "2026-01-31T13:00:00+01:00", "1769860800000"]
)
def test_times(text: str) -> None:
    assert (
        source(startingPosition="AT_TIMESTAMP", startingTimestamp=text).start.time == 1769860800000
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"streams": " "}, "streams: is missing"),
        ({"streams": "a/b"}, "neither the name nor the ARN"),
        ({"streams": "a,a"}, "twice"),
        (
            {"streams": "a,arn:aws:kinesis:eu-west-1:123456789012:stream/a"},
            "twice, as a and arn:.*stream/a: remove one, or use the ARNs",
        ),
        ({"kinesisEndpoint": "ftp://x"}, "expected an http or https URL"),
        ({"kinesisSecret": "../x"}, "not a valid name"),
        ({"onDataLoss": "ignore"}, "onDataLoss"),
        ({"startingPosition": "EARLIEST"}, "startingPosition"),
        (
            {"startingPosition": "AT_TIMESTAMP"},
            "startingTimestamp: goes together with startingPosition AT_TIMESTAMP",
        ),
        ({"startingTimestamp": "1"}, "startingTimestamp: goes together"),
        (
            {"startingPosition": "AT_TIMESTAMP", "startingTimestamp": "soon"},
            "expected a time such as",
        ),
        (
            {"startingPosition": "AT_TIMESTAMP", "startingTimestamp": "2026-01-31T12:00:00"},
            "has no time zone",
        ),
        (
            {"startingPosition": "AT_TIMESTAMP", "startingTimestamp": "1969-12-31T00:00:00Z"},
            "startingTimestamp: '1969-12-31T00:00:00Z' is before 1970",
        ),
        *(
            ({"kinesisEndpoint": url}, "kinesisEndpoint: expected an http or https URL")
            for url in ("http://[::1", "http://host:port", "http://host:99999", "http://:80")
        ),
        *(
            ({"kinesisRegion": name}, "kinesisRegion: expected the name of a region")
            for name in ("eu west", "eu-west-1/", "EU", "-")
        ),
        *(
            ({"discoveryInterval": time}, "discoveryInterval: must be at least 100ms")
            for time in ("0", "99ms")
        ),
        ({"startingPosition": "SEQUENCE_NUMBERS"}, "startingSequenceNumbers: goes together"),
        *(
            (
                {"startingPosition": "SEQUENCE_NUMBERS", "startingSequenceNumbers": text},
                "expected streams",
            )
            for text in (
                "",
                "[]",
                "{}",
                '{"orders": 1}',
                '{"orders": {"s": "x"}}',
                '{"orders": {"s": "-1"}}',
                "[" * 100_000,
            )
        ),
        (
            {
                "startingPosition": "SEQUENCE_NUMBERS",
                "startingSequenceNumbers": '{"other": {"s": "1"}}',
            },
            "'other' is not one of the streams",
        ),
    ],
)
def test_invalid_options_are_rejected(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidSpecError, match=message):
        source(**given)


def test_the_order_of_sequence_numbers_in_the_option_means_nothing() -> None:
    made = source(
        streams="orders,clicks",
        startingPosition="SEQUENCE_NUMBERS",
        startingSequenceNumbers='{"orders": {"b": "2", "a": "1"}, "clicks": {"c": 3}}',
    )

    assert made.start.sequences == (("clicks", "c", 3), ("orders", "a", 1), ("orders", "b", 2))


def of_spec(**given: Any) -> Any:
    return to_source(
        parse_spec({**FULL_KINESIS, "source": {"kinesis": {"streams": ["orders"], **given}}})
    )


def test_the_fields_of_the_custom_resource_mean_the_same() -> None:
    full = to_source(parse_spec(FULL_KINESIS))

    assert isinstance(full, KinesisSource)
    assert full.server == Server(
        endpoint="https://kinesis.example.org:4567",
        region="eu-west-1",
        secret="streams",  # noqa: S106 - a name
    )
    assert full.start.at is StartAt.SEQUENCE_NUMBERS
    assert full.start.sequences == (
        ("orders", "shardId-000000000001", 49590338271490256608559692538361571095921),
    )
    assert (full.on_loss, full.discovery_interval) == (OnShardLoss.CONTINUE, 10.0)
    assert of_spec().start == Start()
    assert of_spec(startingPosition={"type": "Timestamp", "timestamp": 5}).start == Start(
        at=StartAt.AT_TIMESTAMP, time=5
    )


def test_a_stream_without_an_endpoint_is_at_the_default_one_of_its_region() -> None:
    assert of_spec().server == Server()
    assert of_spec(region="eu-west-1").server == Server(region="eu-west-1")


def test_the_order_of_sequence_numbers_in_the_custom_resource_means_nothing() -> None:
    """A source that differs is taken for a changed one."""
    shards = {"shard-1": "11", "shard-2": "22"}
    one, other = (
        of_spec(
            streams=["orders", "returns"],
            startingPosition={
                "type": "SequenceNumbers",
                "sequenceNumbers": {
                    stream: dict(in_order(shards.items()))
                    for stream in in_order(("orders", "returns"))
                },
            },
        )
        for in_order in (list, reversed)
    )
    assert one == other


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"streams": ["orders", "orders"]}, r"source\.kinesis\.streams: names a stream twice"),
        (
            {"streams": ["arn:aws:kinesis:eu-west-1:123456789012:stream/orders", "orders"]},
            r"source\.kinesis\.streams: names a stream twice, as orders and arn",
        ),
        ({"streams": ["a/b"]}, "the name or the ARN of a stream, not 'a/b'"),
        ({"discoveryInterval": "10ms"}, "discoveryInterval: must be at least 1s"),
        (
            {"startingPosition": {"type": "Timestamp"}},
            "timestamp: goes together with type Timestamp",
        ),
        ({"startingPosition": {"timestamp": 1}}, "timestamp: goes together with type Timestamp"),
        ({"startingPosition": {"type": "SequenceNumbers"}}, "sequenceNumbers: goes together"),
        (
            {
                "startingPosition": {
                    "type": "SequenceNumbers",
                    "sequenceNumbers": {"other": {"s": "1"}},
                }
            },
            "'other' is not one of the streams",
        ),
        ({"endpoint": "file:///etc/passwd"}, "an http or https URL of a host"),
    ],
)
def test_the_custom_resource_rejects_invalid_fields(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpecError, match=message):
        of_spec(**given)
