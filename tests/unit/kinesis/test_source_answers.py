"""What a source of Kinesis streams asks, and what it says of shards and names."""

from dataclasses import replace

import pytest

from balanced_source.api import IDENTITY, Boundedness, SplitId
from balanced_source.connectors.kinesis import (
    TRIM_HORIZON,
    KinesisSource,
    OnShardLoss,
    Server,
    ShardSplit,
    Start,
    StartAt,
    named_twice,
)
from balanced_source.connectors.kinesis.later import Later
from balanced_source.connectors.kinesis.lineage import Shard
from balanced_source.reasons import Reason

ARN = "arn:aws:kinesis:eu-west-1:1:stream/s"
SOURCE = KinesisSource(
    streams=("s", "t"),
    server=Server(region="eu-west-1"),
    start=Start(at=StartAt.LATEST),
)
SHARDS: list[SplitId] = [("s", "0"), ("s", "1")]


def test_shards_of_the_first_discovery_start_where_the_user_says_and_later_ones_do_not() -> None:
    first = SOURCE.initialize("s", SHARDS, is_first=True)
    later = SOURCE.initialize("s", SHARDS, is_first=False)

    assert (first.scope, first.split_ids, first.server) == ("s", tuple(SHARDS), SOURCE.server)
    assert (first.start, first.is_overdue) == (SOURCE.start, False)
    assert later == replace(first, start=TRIM_HORIZON)


@pytest.mark.parametrize("is_overdue", [False, True])
def test_children_start_at_the_time_of_their_parents(*, is_overdue: bool) -> None:
    timed = SOURCE.initialize_later("s", SHARDS, Later(time=7, is_overdue=is_overdue))
    at_zero = SOURCE.initialize_later("s", SHARDS, Later(time=0, is_overdue=is_overdue))
    oldest = SOURCE.initialize_later("s", SHARDS, Later(is_overdue=is_overdue))

    assert timed.start == Start(at=StartAt.AT_TIMESTAMP, time=7)
    assert at_zero.start == Start(at=StartAt.AT_TIMESTAMP, time=0)
    assert oldest.start == TRIM_HORIZON
    assert {call.is_overdue for call in (timed, at_zero, oldest)} == {is_overdue}


def test_shards_end_and_tell_only_how_far_they_are_behind_in_time() -> None:
    assert SOURCE.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    assert SOURCE.has_ending_splits
    assert not SOURCE.counts_unread(("s", "0"))
    assert not SOURCE.may_lose
    assert replace(SOURCE, on_loss=OnShardLoss.CONTINUE).may_lose


@pytest.mark.parametrize(
    ("split_id", "scope", "is_wanted"),
    [
        (("s", "0"), "s", True),
        ((ARN, "0"), "s", True),
        (("u", "0"), "u", False),
        (("arn:aws:kinesis:eu-west-1:1:stream/u", "0"), "arn:aws:kinesis:eu-west-1:1:stream/u", 0),
    ],
)
def test_a_shard_belongs_to_the_stream_that_its_spelling_means(
    split_id: SplitId, scope: str, is_wanted: bool
) -> None:
    for _ in range(2):
        assert SOURCE.scope_of(split_id) == scope
        assert SOURCE.subscribes(split_id) == is_wanted
    assert SOURCE.scopes() == ("s", "t")


@pytest.mark.parametrize(
    ("exists", "what"),
    [
        (True, "was deleted and created again"),
        (False, "does not retain the rest any more, or was deleted"),
    ],
)
def test_unread_shards_are_named_by_stream(*, exists: bool, what: str) -> None:
    splits = [
        ShardSplit(stream=stream, shard=shard)
        for stream, shard in (("t", "9"), ("s", "1"), ("s", "0"))
    ]

    first, second = SOURCE.unread(splits, exists=exists)

    assert first.startswith("stream s: 2 shards not read to the end, and the stream")
    assert second.startswith("stream t: 1 shard not read")
    assert what in first
    assert first.index("0") < first.index(" 1"), "in their order"
    assert "9" in second
    assert SOURCE.unread([], exists=exists) == []


def test_a_start_that_a_stream_does_not_have_is_a_refusal_of_that_stream() -> None:
    start = Start(at=StartAt.SEQUENCE_NUMBERS, sequences=(("s", "7", 1), ("s", "8", 1)))
    source = replace(SOURCE, start=start)

    error = source.wrong_start("s", {("s", "0"): Shard()})

    assert error is not None
    assert str(error).startswith("stream s does not have the shards")
    assert (error.scope, error.reason) == ("s", Reason.POSITION_OUT_OF_RANGE)
    assert source.wrong_start("s", {("s", "7"): Shard(), ("s", "8"): Shard()}) is None
    assert source.wrong_start("t", {}) is None, "they are of another stream"


def test_a_split_is_made_of_what_it_says_of_itself() -> None:
    split = ShardSplit(
        stream="s", shard="0", offset=5, time=1, sequence=2, found=3, created="c", read_up_to=4
    )

    assert SOURCE.create_split(split.split_id, split.position, split.attributes()) == split
    assert split.attributes()[IDENTITY] == "c"
    assert split.at(5) == split
    assert split.at(6) == replace(split, offset=6, read_up_to=None)
    assert split.at(None) == replace(split, offset=0, read_up_to=None)


@pytest.mark.parametrize(
    ("streams", "says"),
    [
        (("s", "t"), ""),
        ((), ""),
        (("s", "t", "s"), "names a stream twice: remove one"),
        (("t", ARN, "s"), f"names a stream twice, as s and {ARN}: remove one"),
        ((ARN, ARN), "names a stream twice: remove one"),
        ((ARN, ARN.replace("/s", "/t")), ""),
        ((ARN, ARN.replace("eu-west", "us-west")), ""),
    ],
)
def test_a_stream_may_be_named_once(streams: tuple[str, ...], says: str) -> None:
    why = named_twice(streams)

    assert why.startswith(says)
    assert bool(why) is bool(says)


def test_the_first_stream_that_is_named_twice_is_said() -> None:
    other = ARN.replace("/s", "/r")

    assert "as r and" in named_twice(("s", ARN, other, "r"))
    assert "as r and" in named_twice(("r", other, ARN, "s"))


def test_readers_are_told_the_server_the_policy_and_the_arns() -> None:
    plain = SOURCE.reader_settings()["kinesis"]
    by_arn = replace(SOURCE, streams=(ARN, "t"), on_loss=OnShardLoss.CONTINUE)

    assert (plain["region"], plain["onLoss"], "arns" in plain) == ("eu-west-1", "Fail", False)
    settings = by_arn.reader_settings()["kinesis"]
    assert (settings["onLoss"], settings["arns"]) == ("Continue", {"s": ARN})
    assert "onDataLoss to Continue" in SOURCE.recreation_advice()
