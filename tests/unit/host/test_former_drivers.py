"""What a new driver repeats of the report that its first one replaces."""

from dataclasses import replace

import pytest

from balanced_source.api import Problem, SourceEvent
from balanced_source.documents.alignment import SourceWatermark
from balanced_source.documents.assignment import NumberedEvent
from balanced_source.documents.report import HostReport
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host import Phase, ReaderHost, handed_on

A = ("k", "t", 0)
LAST = HostReport(
    host="0",
    incarnation=3,
    sequence=9,
    epoch=5,
    parallelism=1,
    owners={A: 0},
    positions={A: 70},
    lag=12,
    heartbeat=100.0,
)


@pytest.mark.parametrize(("epoch", "is_repeated"), [(4, True), (5, False), (6, False)])
def test_a_report_is_repeated_while_the_checkpoint_does_not_know_its_epoch(
    epoch: int, *, is_repeated: bool
) -> None:
    found = handed_on(LAST, StreamOffset(epoch=epoch))

    assert (found is not None) is is_repeated
    assert handed_on(None, StreamOffset(epoch=epoch)) is None


def test_the_report_that_a_driver_only_repeated_is_handed_on_instead_of_its_own() -> None:
    waiting = HostReport(host="0", incarnation=4, sequence=1, epoch=2, former=LAST)

    found = handed_on(waiting, StreamOffset(epoch=2))

    assert found is not None
    assert (found.incarnation, found.positions, found.former) == (3, {A: 70}, None)


def test_what_was_true_of_the_former_driver_alone_is_not_repeated() -> None:
    """Its problems, its events and what it asked for ended with it."""
    event = NumberedEvent(number=1, subtask_id=0, event=SourceEvent(name="hello"))
    busy = replace(
        LAST,
        metrics={"records": 5},
        problems=(Problem(reason="Lost", message="Some are gone."),),
        alignment=SourceWatermark(group="g", watermark=7, max_drift=1, idle_timeout=2.0),
        events=(event,),
        requests={0: 2},
    )

    found = handed_on(busy, StreamOffset(epoch=1))

    assert found == replace(LAST, lag=None)


def test_a_replay_is_not_a_planned_micro_batch() -> None:
    """Spark asks for its partitions before anything was committed."""
    starting = ReaderHost(incarnation=1)

    assert starting.phase is Phase.STARTING
    assert starting.on_planned(StreamOffset(epoch=7, positions={A: 5})) is starting
