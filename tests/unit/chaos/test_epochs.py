"""What drivers noted, as operations for the linearisability check."""

from typing import Any

import pytest

from chaos.checker.epochs import differing_replays, operations

pytestmark = pytest.mark.unit


def logged(batch: int, at: float, begin: int, end: int, *, epoch: int = 1) -> dict[str, Any]:
    ranges = [["main", "orders", 0, "id", begin, end]]
    return {"event": "logged", "batch": batch, "at": at, "pid": 7, "epoch": epoch, "ranges": ranges}


def committed(batch: int, at: float) -> dict[str, Any]:
    return {"event": "committed", "batch": batch, "at": at, "pid": 7}


def test_a_driver_adopts_once_per_epoch_and_delivers_each_micro_batch() -> None:
    events = [logged(0, 1, 0, 5), committed(0, 2), logged(1, 3, 5, 9), logged(2, 4, 9, 9, epoch=2)]

    found = [
        (op["kind"], op["epoch"], op["from"], op["to"], op["return"]) for op in operations([events])
    ]

    assert found == [
        ("adopt", 1, 0, 0, 1),
        ("deliver", 1, 0, 5, 2),
        ("deliver", 1, 5, 9, None),
        ("adopt", 2, 0, 0, 4),
        ("deliver", 2, 9, 9, None),
    ]


def test_a_replay_is_the_same_delivery() -> None:
    """It began when the micro-batch was logged first, and ended when it was committed."""
    events = [logged(0, 1, 0, 5), logged(0, 10, 0, 5), committed(0, 11)]

    (_, delivery) = operations([events])

    assert (delivery["call"], delivery["return"]) == (1, 11)


def test_a_replay_with_other_ranges_or_another_epoch_is_found() -> None:
    assert not differing_replays([logged(0, 1, 0, 5), logged(0, 2, 0, 5)])
    assert differing_replays([logged(0, 1, 0, 5), logged(0, 2, 0, 6)]) == [0]
    assert differing_replays([logged(0, 1, 0, 5), logged(0, 2, 0, 5, epoch=2)]) == [0]


def test_reading_goes_back_only_where_a_cut_log_was_reported() -> None:
    events = [logged(0, 1, 0, 9), logged(1, 3, 5, 7)]
    said = (
        "cluster main: the log of topic orders was truncated: partition 0 from offset 5 to 8."
        " Reading stops"
    )

    assert [op["kind"] for op in operations([events])] == ["adopt", "deliver", "deliver"]
    assert [op["kind"] for op in operations([events], [said])] == [
        "adopt",
        "deliver",
        "reset",
        "deliver",
    ]
    assert [op["kind"] for op in operations([events], [said.replace("offset 5", "offset 6")])][
        2
    ] == "deliver"


def test_a_micro_batch_may_only_go_back_to_a_cut_that_is_named() -> None:
    """It is logged as a range that ends before its start."""
    events = [logged(0, 1, 0, 8), logged(1, 2, 8, 5), logged(2, 3, 5, 9)]
    said = "cluster main: the log of topic orders was truncated: partition 0 from offset 5 to 8."

    kinds = [op["kind"] for op in operations([events], [said])]

    assert kinds == ["adopt", "deliver", "reset", "deliver"]
    assert [op["kind"] for op in operations([events])] == ["adopt", "deliver", "deliver", "deliver"]


def test_the_histories_of_several_hosts_are_operations_on_the_same_splits() -> None:
    """A split that moves is adopted and read by the next host.

    Each host counts its micro-batches itself.
    """
    first = [logged(0, 1, 0, 5), committed(0, 2), logged(1, 6, 5, 5)]
    second = [{**logged(0, 4, 5, 9, epoch=2), "pid": 1}, {**committed(0, 5), "pid": 1}]

    found = [(op["client"], op["kind"], op["from"], op["to"]) for op in operations([first, second])]

    assert found == [
        (7, "adopt", 0, 0),
        (7, "deliver", 0, 5),
        (1, "adopt", 0, 0),
        (1, "deliver", 5, 9),
        (7, "deliver", 5, 5),
    ]


def test_going_back_to_a_cut_is_also_seen_when_another_host_had_the_split() -> None:
    first, second = (
        [logged(0, 1, 0, 9), committed(0, 2)],
        [{**logged(0, 3, 5, 7, epoch=2), "pid": 1}],
    )
    said = "cluster main: the log of topic orders was truncated: partition 0 from offset 5 to 8."

    kinds = [op["kind"] for op in operations([first, second], [said])]

    assert kinds == ["adopt", "deliver", "adopt", "reset", "deliver"]
