"""How positions are asked for, and what the answers of the service mean."""

import datetime as dt
import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.api import Caller
from balanced_source.connectors.discovery import Alarm
from balanced_source.connectors.kinesis import (
    FirstPositions,
    KinesisSource,
    ListShards,
    Server,
    Shard,
    ShardSplit,
    Start,
    StartAt,
    discovered,
    first_splits,
)
from balanced_source.errors import ContractViolationError, RefusedDiscoveryError
from balanced_source_adapters.kinesis import client as module
from balanced_source_adapters.kinesis.client import KinesisClient, Record, Summary
from balanced_source_adapters.kinesis.connector import KinesisCodec, KinesisConnector
from support.world import kafka_source

SERVER = Server(region="eu-west-1")
ARN = "arn:aws:kinesis:eu-west-1:1:stream/orders"
NOON = dt.datetime(2026, 1, 1, 12, 0, 0, 500_000, dt.UTC)
NOON_MILLIS = 1_767_268_800_500
SECRETS: Any = None


class Service:
    """Answers each operation with the next of its answers, and notes what it was asked."""

    def __init__(self, **answers: list[Mapping[str, Any]]) -> None:
        self.answers = answers
        self.asked: list[dict[str, Any]] = []

    def __getattr__(self, operation: str) -> Any:
        def ask(**question: Any) -> Any:
            self.asked.append(question)
            return self.answers[operation].pop(0)

        return ask


def client(monkeypatch: pytest.MonkeyPatch, service: Service) -> KinesisClient:
    monkeypatch.setattr(module, "_client", lambda *_: service)
    return KinesisClient(SERVER, SECRETS, client_id="test")


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        ({}, {"ShardIteratorType": "TRIM_HORIZON"}),
        (
            {"offset": 8, "sequence": 3, "time": 9},
            {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": "7"},
        ),
        (
            {"sequence": 3, "time": 9},
            {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": "3"},
        ),
        (
            {"sequence": 0},
            {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": "0"},
        ),
        ({"time": NOON_MILLIS}, {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": NOON}),
        (
            {"time": 0},
            {
                "ShardIteratorType": "AT_TIMESTAMP",
                "Timestamp": dt.datetime.fromtimestamp(0, dt.UTC),
            },
        ),
    ],
)
def test_an_iterator_begins_at_the_record_before_the_position(
    monkeypatch: pytest.MonkeyPatch, split: dict[str, int], expected: dict[str, Any]
) -> None:
    """Whether that record comes again shows whether anything in between has expired."""
    service = Service(get_shard_iterator=[{"ShardIterator": "it"}])

    found = client(monkeypatch, service).iterator(
        ShardSplit(stream="orders", shard="shardId-0", **split)
    )

    assert found == "it"
    assert service.asked == [{"StreamName": "orders", "ShardId": "shardId-0", **expected}]


def test_a_stream_may_be_named_by_its_arn(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(get_shard_iterator=[{"ShardIterator": "it"}])

    client(monkeypatch, service).iterator(ShardSplit(stream=ARN, shard="shardId-0"))

    assert service.asked[0]["StreamARN"] == ARN
    assert "StreamName" not in service.asked[0]


def test_shards_are_listed_page_by_page_with_their_parents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The service refuses the name of the stream beside a token."""

    def shard(number: int, *parents: str, closed: bool = False) -> dict[str, Any]:
        names = ("ParentShardId", "AdjacentParentShardId")
        ends = {"EndingSequenceNumber": "9"} if closed else {}
        return {
            "ShardId": f"s{number}",
            "SequenceNumberRange": {"StartingSequenceNumber": "1", **ends},
            **dict(zip(names, parents, strict=False)),
        }

    service = Service(
        list_shards=[
            {"Shards": [shard(0, closed=True), shard(1, closed=True)], "NextToken": "more"},
            {"Shards": [shard(2, "s0", "s1"), shard(3, "s0")]},
        ]
    )

    found = client(monkeypatch, service).shards("orders")

    s0, s1, s2, s3 = (("orders", f"s{number}") for number in range(4))
    assert found == {
        s0: Shard((), is_open=False),
        s1: Shard((), is_open=False),
        s2: Shard((s0, s1), is_open=True),
        s3: Shard((s0,), is_open=True),
    }
    assert service.asked == [{"StreamName": "orders"}, {"NextToken": "more"}]


def test_records_have_the_time_of_their_arrival_in_microseconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record = {
        "SequenceNumber": "12",
        "PartitionKey": "k",
        "Data": b"v",
        "ApproximateArrivalTimestamp": NOON,
    }
    service = Service(
        get_records=[
            {
                "Records": [record],
                "NextShardIterator": "next",
                "MillisBehindLatest": 3,
                "ResponseMetadata": {"HTTPHeaders": {"date": "Thu, 01 Jan 2026 12:00:00 GMT"}},
            },
            {"Records": []},
        ]
    )
    of_service = client(monkeypatch, service)

    batch = of_service.records("orders", "s0", "it", 10)
    last = of_service.records("orders", "s0", "next", 10)

    assert tuple(batch) == (
        (Record("orders", "s0", 12, "k", b"v", NOON_MILLIS * 1000),),
        "next",
        3,
        NOON_MILLIS - 500,
    )
    assert tuple(last) == ((), None, None, None)
    assert service.asked == [
        {"ShardIterator": "it", "Limit": 10},
        {"ShardIterator": "next", "Limit": 10},
    ]


@pytest.mark.parametrize("has_clock", [True, False])
def test_the_time_of_the_service_is_that_of_its_answer(
    monkeypatch: pytest.MonkeyPatch, *, has_clock: bool
) -> None:
    headers = {"date": "Thu, 01 Jan 2026 12:00:00 GMT"} if has_clock else {}
    answer = {
        "StreamDescriptionSummary": {"StreamCreationTimestamp": NOON},
        "ResponseMetadata": {"HTTPHeaders": headers},
    }
    before = dt.datetime.now(dt.UTC).timestamp() * 1000 - 1000

    found = client(monkeypatch, Service(describe_stream_summary=[answer])).summary("orders")

    assert found.created == str(NOON_MILLIS)
    assert found.now % 1000 == 0
    assert found.now == NOON_MILLIS - 500 if has_clock else found.now > before


IDS = (("orders", "s0"), ("orders", "s1"))
STARTS = [Start(), Start(at=StartAt.AT_TIMESTAMP, time=NOON_MILLIS)]


@pytest.mark.parametrize(
    "call",
    [
        ListShards(scope="orders", round=3, server=SERVER),
        *[
            FirstPositions(scope="orders", split_ids=IDS, server=SERVER, start=start)
            for start in STARTS
        ],
        FirstPositions(
            scope="orders", split_ids=IDS, server=SERVER, start=Start(), is_overdue=True
        ),
    ],
)
def test_a_call_is_the_same_in_the_driver(call: Any) -> None:
    codec = KinesisCodec()

    assert codec.call_from_json(json.loads(json.dumps(codec.call_to_json(call)))) == call


@pytest.mark.parametrize("created", ["5", None])
def test_listed_shards_are_the_same_in_the_operator(created: str | None) -> None:
    codec, call = KinesisCodec(), ListShards(scope="orders", round=3, server=SERVER)
    shards = {
        ("orders", "s0"): Shard((), is_open=False),
        ("orders", "s1"): Shard((("orders", "s0"),), is_open=True),
    }
    result = discovered(shards, created=created)

    written = json.loads(json.dumps(codec.result_to_json(call, result)))

    assert codec.result_from_json(call, written) == result
    empty = json.loads(json.dumps(codec.result_to_json(call, discovered({}, created=created))))
    assert codec.result_from_json(call, empty).split_ids == frozenset()


def test_first_positions_are_the_same_in_the_operator() -> None:
    codec = KinesisCodec()
    call = FirstPositions(scope="orders", split_ids=IDS, server=SERVER, start=Start())
    result = [
        ShardSplit(stream="orders", shard="s0", offset=8),
        ShardSplit(stream="orders", shard="s1", time=NOON_MILLIS),
    ]

    written = json.loads(json.dumps(codec.result_to_json(call, result)))

    assert codec.result_from_json(call, written) == result


@pytest.mark.parametrize(("retention", "found"), [(1000, NOON_MILLIS - 1001), (None, NOON_MILLIS)])
def test_shards_that_are_overdue_are_older_than_the_retention(
    retention: int | None, found: int
) -> None:
    call = FirstPositions(
        scope="orders", split_ids=IDS, server=SERVER, start=Start(), is_overdue=True
    )

    splits = first_splits(call, created="1", now=NOON_MILLIS, retention=retention)

    assert {split.found for split in splits} == {found}


def test_other_calls_are_a_mistake() -> None:
    execute = KinesisConnector().executor(SECRETS, caller=Caller.OWNER, client_id="test")
    other: Any = SimpleNamespace()

    with pytest.raises(ContractViolationError, match="is not a call of kinesis"):
        KinesisCodec().call_to_json(Alarm())
    with pytest.raises(ContractViolationError, match="cannot execute a SimpleNamespace"):
        execute(other)


class Clock:
    """A service at noon."""

    def summary(self, _stream: str) -> Summary:
        return Summary(created="1", now=NOON_MILLIS)


@pytest.mark.parametrize(
    ("start", "is_refused"),
    [
        (Start(at=StartAt.AT_TIMESTAMP, time=NOON_MILLIS), False),
        (Start(at=StartAt.AT_TIMESTAMP, time=NOON_MILLIS + 999), False),
        (Start(at=StartAt.AT_TIMESTAMP, time=NOON_MILLIS + 1000), True),
        (Start(), False),
    ],
)
def test_a_start_in_the_future_is_refused(
    monkeypatch: pytest.MonkeyPatch, start: Start, *, is_refused: bool
) -> None:
    """Clocks differ by less than a second."""
    monkeypatch.setattr(module, "KinesisClient", lambda *_, **__: Clock())
    execute = KinesisConnector().executor(SECRETS, caller=Caller.OWNER, client_id="test")
    call = FirstPositions(scope="orders", split_ids=IDS, server=SERVER, start=start)

    if is_refused:
        with pytest.raises(RefusedDiscoveryError, match="from a time in the future"):
            execute(call)
    else:
        assert {split.split_id for split in execute(call)} == set(IDS)


def test_only_the_secret_of_a_stream_is_needed() -> None:
    connector = KinesisConnector()
    own = KinesisSource(streams=("orders",), server=SERVER)
    lent = KinesisSource(streams=("orders",), server=Server(region="eu", secret="streams"))  # noqa: S106 - a name

    assert connector.secrets(own) == ()
    assert connector.secrets(lent) == ("streams",)
    assert connector.secrets(kafka_source()) == ()
