"""A query whose Spark checkpoint was lost, or restored from an older copy, says so."""

from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balanced_source.api import IDENTITY, SplitId
from balanced_source.documents import stream_offset
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import ForeignCheckpointError
from balanced_source.host.ends import SplitEnd
from balanced_source_adapters.kafka.admin import KafkaAdmin
from balanced_source_spark.checkpoints import (
    CheckpointWatch,
    check_owner,
    checkpoint_problem,
    splits_behind,
)
from balanced_source_spark.host_runtime import HostRuntime
from balanced_source_spark.instance import Instance
from balanced_source_spark.options import parse_options
from balanced_source_spark.planner import StreamPlanner
from balanced_source_spark.stream_reader import UNLIMITED
from support.memory_channel import MemoryChannel
from testbed.waiting import wait_until

ONE: SplitId = ("main", "orders", 0)
TWO: SplitId = ("main", "orders", 1)
REPORTED = HostReport(incarnation=3, instance="gone", epoch=5, positions={ONE: 500, TWO: 70})
FORMER = Instance(id="gone", pod="orders-1-driver", uid="u1")
ME = Instance(id="me", pod="orders-1-driver", uid="u2")


def offset(one: int, two: int, *, epoch: int = 5) -> StreamOffset:
    return StreamOffset(
        epoch=epoch, parallelism=1, owners={ONE: 0, TWO: 0}, positions={ONE: one, TWO: two}
    )


def test_a_checkpoint_that_is_as_new_as_the_report_or_newer_is_not_a_problem() -> None:
    assert checkpoint_problem(offset(500, 70), REPORTED) is None
    assert checkpoint_problem(offset(510, 70), REPORTED) is None


def test_a_first_start_is_not_a_problem() -> None:
    assert checkpoint_problem(StreamOffset(), None) is None
    assert checkpoint_problem(StreamOffset(), HostReport(incarnation=1)) is None


def test_a_lost_checkpoint_reports_where_reading_continues() -> None:
    problem = checkpoint_problem(StreamOffset(), REPORTED)

    assert problem is not None
    assert problem.reason == "CheckpointLost"
    assert "incarnation 3 of this query read 2 splits" in problem.message
    assert "Reading continues where that query last reported" in problem.message


def test_an_older_checkpoint_reports_the_records_that_are_delivered_again() -> None:
    problem = checkpoint_problem(offset(300, 60), REPORTED)

    assert problem is not None
    assert problem.reason == "CheckpointOlder"
    assert (
        "2 splits will go back by 210 offsets, e.g. main/orders/0 from 500 to 300"
        in problem.message
    )


def test_a_recreated_topic_is_not_an_older_checkpoint() -> None:
    former = replace(REPORTED, attributes={ONE: {IDENTITY: "a"}, TWO: {IDENTITY: "a"}})
    recreated = replace(offset(0, 0), attributes={ONE: {IDENTITY: "b"}, TWO: {IDENTITY: "b"}})

    assert checkpoint_problem(recreated, former) is None


def test_a_split_that_this_query_does_not_hold_is_not_behind() -> None:
    assert checkpoint_problem(StreamOffset(epoch=5, positions={ONE: 500}), REPORTED) is None


def test_an_older_checkpoint_of_other_splits_is_named_by_its_epoch() -> None:
    """Blocks of files that were read since then, or an earlier part of a hybrid source."""
    block: SplitId = ("files", "files", "/in/a", 0)
    older = StreamOffset(epoch=3, positions={block: 10})

    for former in (REPORTED, HostReport(incarnation=4, epoch=3, former=REPORTED)):
        problem = checkpoint_problem(older, former)
        assert problem is not None
        assert problem.reason == "CheckpointOlder"
        assert (
            "incarnation 3 of this query delivered: its epoch is 3, and that query had epoch 5"
            in (problem.message)
        )
        assert "continues with the 1 split that the checkpoint holds" in problem.message
    assert checkpoint_problem(replace(older, epoch=5), REPORTED) is None


def test_a_source_without_splits_has_no_older_checkpoint() -> None:
    empty = HostReport(incarnation=3, epoch=5)

    assert checkpoint_problem(StreamOffset(), empty) is None
    assert checkpoint_problem(StreamOffset(epoch=5), empty) is None


def test_a_query_that_has_read_everything_still_has_an_older_checkpoint() -> None:
    """All of its splits have left, and a copy of its checkpoint still holds one."""
    problem = checkpoint_problem(
        StreamOffset(epoch=3, positions={ONE: 10}), HostReport(incarnation=3, epoch=5)
    )

    assert problem is not None
    assert problem.reason == "CheckpointOlder"


@given(one=st.integers(0, 1000), two=st.integers(0, 1000))
def test_exactly_what_would_be_read_again_is_behind(one: int, two: int) -> None:
    behind = splits_behind(offset(one, two), REPORTED)
    again = {
        s
        for s, p in REPORTED.positions.items()
        for record in range(p or 0)
        if record >= {ONE: one, TWO: two}[s]
    }

    assert behind.keys() == again


@pytest.mark.parametrize(
    ("checkpoint", "reason"),
    [
        (StreamOffset(), "CheckpointLost"),
        (offset(300, 70), "CheckpointOlder"),
        (offset(300, 70, epoch=4), "CheckpointOlder"),
        (StreamOffset(epoch=4, positions={("files", "a"): 3}), "CheckpointOlder"),
    ],
)
def test_the_first_report_has_the_problem_until_everything_is_delivered_again(
    checkpoint: StreamOffset, reason: str
) -> None:
    channel = MemoryChannel()
    channel.former = lambda _: replace(REPORTED, instance=str(FORMER))  # type: ignore[method-assign]
    runtime = HostRuntime(channel, instance=ME)
    runtime.committed(checkpoint)
    wait_until(lambda: channel.reports, 20, "registration", interval=0.005)
    assert [problem.reason for problem in channel.reports[0].problems] == [reason]
    # The operator may not have stored what that report said, and this one replaces it.
    repeated = channel.reports[0].former
    assert (repeated is None) == (checkpoint.epoch == REPORTED.epoch)
    assert repeated is None or repeated.positions == REPORTED.positions

    runtime.planned(offset(400, 70, epoch=6))
    runtime.committed(offset(400, 70, epoch=6))
    wait_until(lambda: channel.reports[-1].epoch == 6, 20, "progress", interval=0.005)
    assert channel.reports[-1].problems

    runtime.committed(offset(500, 70, epoch=6))
    runtime.planned(offset(600, 80, epoch=7))
    wait_until(lambda: channel.reports[-1].epoch == 7, 20, "progress", interval=0.005)
    assert not channel.reports[-1].problems
    assert channel.reports[-1].former is None
    runtime.close()


# --- a log that was cut ---------------------------------------------------------------------------

CUT: Final = replace(offset(300, 70), terms={ONE: 2})
"""Where the micro-batch ends that took note of the cut: the next one reads what is there now."""


def reported_after(begin: StreamOffset, end: StreamOffset, monkeypatch: Any) -> list[str]:
    """Return the problems of a query whose restart replays this micro-batch.

    Its driver ended before the micro-batch was committed. `REPORTED` is its last report.
    """
    channel = MemoryChannel()
    channel.former = lambda _: replace(REPORTED, instance="")  # type: ignore[method-assign]
    monkeypatch.setattr("balanced_source_spark.planner_parts.open_channel", lambda _: channel)
    query = planner("shop")
    logged = [stream_offset.to_json(replace(it, source="shop/orders")) for it in (begin, end)]

    query.partitions(logged[0], logged[1])
    query.latestOffset(logged[1], UNLIMITED)
    wait_until(lambda: channel.reports, 20, "registration", interval=0.005)
    query.stop()
    return [problem.message for problem in channel.reports[0].problems]


def test_a_cut_that_was_accepted_is_not_an_older_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`onDataLoss: Continue` goes back to where the log was cut, and reads on from there."""
    assert reported_after(offset(500, 70), CUT, monkeypatch) == []


def test_the_last_report_may_be_of_an_earlier_micro_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reported_after(offset(520, 70), CUT, monkeypatch) == []


def test_beside_an_accepted_cut_an_older_checkpoint_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the split that was cut, and of another one."""
    (of_the_split,) = reported_after(offset(480, 70), CUT, monkeypatch)
    (of_another,) = reported_after(
        offset(500, 60), replace(CUT, positions={ONE: 300, TWO: 60}), monkeypatch
    )

    # Up to 480 the checkpoint knows what was read.
    assert "1 split will go back by 20 offsets, e.g. main/orders/0 from 500 to 480" in of_the_split
    assert "1 split will go back by 10 offsets, e.g. main/orders/1 from 70 to 60" in of_another


def test_a_split_that_starts_again_has_no_former_positions() -> None:
    """Such as that of a recreated topic: what its former namesake had read says nothing."""
    watch = CheckpointWatch()
    anew = replace(CUT, starts={ONE: 300})

    watch.note_replay(offset(500, 70), anew)

    assert watch.compare(anew, REPORTED, instance="me") is not None


def test_a_split_that_was_not_read_yet_has_given_up_nothing() -> None:
    watch, fresh = CheckpointWatch(), replace(CUT, positions={ONE: 500, TWO: None})

    watch.note_replay(replace(fresh, positions={ONE: 500, TWO: None}), fresh)

    assert watch.compare(fresh, None, instance="me") is None
    assert watch.compare(fresh, REPORTED, instance="me") is not None, "TWO was read up to 70"


# --- which source a checkpoint belongs to ---------------------------------------------------------


@pytest.mark.parametrize(
    ("written_by", "owner", "accepted"),
    [
        ("shop/orders", "shop/orders", ""),
        ("", "shop/orders", ""),
        ("shop/orders", "", ""),
        ("shop/orders-old", "shop/orders", "shop/orders-old"),
    ],
    ids=["its own", "of a release that named no source", "embedded mode", "accepted by the user"],
)
def test_a_checkpoint_is_accepted(written_by: str, owner: str, accepted: str) -> None:
    check_owner(StreamOffset(source=written_by), owner=owner, accepted=accepted)


def planner(namespace: str, **more: str) -> StreamPlanner:
    return StreamPlanner(
        parse_options({"source": "orders", "namespace": namespace, "uid": "u", **more})
    )


def test_the_checkpoint_of_another_source_ends_the_query_before_anything_is_read_or_reported() -> (
    None
):
    foreign = stream_offset.to_json(replace(offset(500, 70), source="shop/orders"))
    later = stream_offset.to_json(replace(offset(600, 70), source="shop/orders"))

    for call in (
        lambda query: query.latestOffset(foreign, UNLIMITED),
        lambda query: query.partitions(foreign, later),
    ):
        query = planner("copy")
        with pytest.raises(
            ForeignCheckpointError,
            match=r"belongs to source shop/orders, but the query reads copy/",
        ):
            call(query)
        assert "_runtime" not in query.__dict__, "the channel was not even opened"


def test_a_user_can_accept_the_checkpoint_of_another_source() -> None:
    options = parse_options(
        {"source": "orders", "namespace": "copy", "acceptCheckpointOf": "shop/orders"}
    )
    check_owner(
        StreamOffset(source="shop/orders"),
        owner=options.checkpoint_owner,
        accepted=options.accept_checkpoint_of,
    )


def test_a_query_that_needs_its_state_folder_says_so() -> None:
    """Blocks of files leave the checkpoint when they are read: only the state knows of them."""
    given = {"connector": "files", "path": "/in"}
    without, within = parse_options(given), parse_options({**given, "stateDir": "/state"})
    kafka = parse_options(
        {"kafka.bootstrap.servers": "b:1", "subscribe": "t", "stateDir": "/state"}
    )
    written = StreamOffset(source=within.checkpoint_owner)

    assert kafka.checkpoint_owner == without.checkpoint_owner == ""
    with pytest.raises(ForeignCheckpointError, match="set stateDir to the same folder again"):
        check_owner(written, owner=without.checkpoint_owner)
    check_owner(written, owner=within.checkpoint_owner)
    check_owner(written, owner="shop/orders")  # the operator's state tells what it knows
    for source in ("", "shop/orders"):
        check_owner(StreamOffset(source=source), owner=within.checkpoint_owner)


def test_every_offset_that_a_query_writes_names_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = MemoryChannel()
    monkeypatch.setattr("balanced_source_spark.planner_parts.open_channel", lambda _: channel)
    monkeypatch.setattr(KafkaAdmin, "ends", lambda *_: {ONE: SplitEnd(end=5)})
    query = planner("shop")
    query.latestOffset(query.initialOffset(), UNLIMITED)
    wait_until(lambda: channel.reports, 20, "registration", interval=0.005)
    settings = {
        "kafka": {
            "clusters": {
                "main": {"bootstrapServers": "localhost:1", "properties": {}, "secrets": []}
            }
        }
    }
    told = Assignment(
        epoch=1,
        parallelism=1,
        incarnations={"0": 1},
        owners={ONE: 0},
        starts={ONE: 0},
        settings=settings,
    )
    channel.publish(told)

    def written() -> dict[str, Any]:
        return query.latestOffset(query.initialOffset(), UNLIMITED)

    wait_until(lambda: written().get("epoch"), 20, "an epoch", interval=0.005)
    assert written()["source"] == "shop/orders"
    query.stop()
