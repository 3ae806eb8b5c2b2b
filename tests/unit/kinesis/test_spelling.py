"""A stream whose name is changed to its ARN, or back."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.connectors.kinesis import (
    KinesisSource,
    OnShardLoss,
    Server,
    Shard,
    ShardReaderSettings,
    ShardSplit,
    Start,
    StartAt,
    discovered,
)
from balanced_source.connectors.kinesis.names import arns, meant
from balanced_source_adapters.kinesis.client import KinesisClient
from balanced_source_spark.contract.secrets import NO_SECRETS
from support.shards import STREAM
from unit.kinesis.test_starts import Scene

ARN = f"arn:aws:kinesis:eu-west-1:123456789012:stream/{STREAM}"
FOREIGN = f"arn:aws:kinesis:us-east-1:123456789012:stream/{STREAM}"


@pytest.mark.parametrize(
    ("stream", "streams", "expected"),
    [
        (STREAM, (STREAM,), STREAM),
        (STREAM, (ARN,), ARN),
        (ARN, (STREAM, "sales"), STREAM),
        (ARN, (FOREIGN,), None),
        (STREAM, (ARN, FOREIGN), None),
        (STREAM, ("sales", f"{ARN}s"), None),
    ],
)
def test_which_stream_a_spelling_may_mean(
    stream: str, streams: tuple[str, ...], expected: str | None
) -> None:
    """Regions and accounts of two ARNs differ, so they are two streams."""
    assert meant(stream, streams) == expected
    assert KinesisSource(streams=streams).subscribes((stream, "s")) is (expected is not None)


def test_names_that_readers_ask_for_by_an_arn() -> None:
    assert arns(("sales", ARN)) == {STREAM: ARN}
    assert arns((ARN, FOREIGN)) == {}

    settings = ShardReaderSettings(arns={STREAM: ARN})
    assert ShardReaderSettings.from_json(settings.to_json()) == settings
    assert "arns" not in ShardReaderSettings().to_json()


def test_a_client_asks_for_a_name_by_its_arn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The region may be that of the ARN alone."""
    client = KinesisClient(Server(), NO_SECRETS, client_id="c", arns={STREAM: ARN})
    monkeypatch.setattr(client, "_call", lambda _stream, ask, **_: ask(Asked()))

    assert client.iterator(ShardSplit(stream=STREAM, shard="s")) == ARN
    assert client._region(STREAM) == "eu-west-1"
    assert client._region("sales") == ""


class Asked:
    """Answers with what it was asked for."""

    def get_shard_iterator(self, **question: Any) -> Any:
        return {"ShardIterator": question["StreamARN"]}


def begun(stream: str, start: Start | None = None) -> Scene:
    """Return a query that has read something of a stream with children."""
    scene = Scene()
    scene.start(start or Start(), streams=(stream,))
    scene.read(2)
    scene.put()
    scene.split()
    scene.put()
    scene.read(3)
    return scene


def renamed(scene: Scene, *streams: str, is_live: bool) -> None:
    source = replace(scene.source, streams=streams)
    if is_live:
        scene.run.source = source
        scene.run.start_coordinator()
    else:
        scene.restart(source)
    scene.put()
    scene.split()
    scene.put()


@pytest.mark.parametrize("is_live", [False, True], ids=["restart", "live"])
@pytest.mark.parametrize("start", [Start(), Start(at=StartAt.LATEST)], ids=["oldest", "latest"])
@pytest.mark.parametrize("names", [(STREAM, ARN), (ARN, STREAM), (STREAM, ARN, STREAM)])
def test_the_same_stream_is_read_on(names: tuple[str, ...], start: Start, is_live: bool) -> None:
    scene = begun(names[0], start)

    for name in names[1:]:
        renamed(scene, name, is_live=is_live)

    found = scene.read(120)
    assert found == list(range(len(scene.stream.sent)))
    assert scene.problems == {}
    assert {s[0] for s in scene.run.offset.positions} == {names[0]}


@pytest.mark.parametrize("on_loss", list(OnShardLoss))
@pytest.mark.parametrize(
    ("names", "created"), [((STREAM, ARN), "7"), ((ARN, STREAM), "7"), ((ARN, FOREIGN), "1")]
)
def test_another_stream_is_read_from_where_the_user_says(
    names: tuple[str, str], created: str, on_loss: OnShardLoss
) -> None:
    """It was created at another time, or has another ARN."""
    scene = begun(names[0])
    scene.source = replace(scene.source, on_loss=on_loss, start=Start(at=StartAt.LATEST))
    scene.read(60)
    before = len(scene.stream.sent)
    scene.stream.recreate(1)
    scene.stream.created = created
    scene.put()
    scene.stream.now += 1000

    scene.restart(replace(scene.source, streams=names[1:]))
    scene.read(3)
    scene.put()

    expected = [*range(before), *range(before + 6, before + 12)]
    assert scene.read(60) == expected
    assert scene.problems == {}


def test_a_stream_that_is_taken_out_for_a_while_is_not_taken_for_another_spelling() -> None:
    """Its positions wait for its return; what is listed meanwhile is of the other stream."""
    scene = Scene()
    scene.put()
    scene.start(Start(), streams=(STREAM, "sales"))
    scene.read()

    for streams, copies in (((STREAM,), 1), ((STREAM, "sales"), 2)):
        scene.run.source = replace(scene.source, streams=streams, retention=3600.0)
        scene.run.start_coordinator()
        scene.split()
        scene.put()
        sent = len(scene.stream.sent)
        assert scene.read(60) == sorted([*range(6), *range(6), *[*range(6, sent)] * copies])
        assert scene.run.coordinator.enumerator.pending_splits() == 0, "none waits for a reader"
    assert scene.problems == {}


def test_a_listing_in_another_spelling() -> None:
    shards = {(ARN, "b"): Shard(((ARN, "a"),)), (ARN, "a"): Shard(is_open=False)}
    expected = {(STREAM, "b"): Shard(((STREAM, "a"),)), (STREAM, "a"): Shard(is_open=False)}

    assert discovered(shards, created="1").spelled(STREAM) == discovered(expected, created="1")
