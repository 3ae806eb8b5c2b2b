"""What the page says of one source."""

from dataclasses import replace
from typing import Any

from balanced_source.api import MAX_WATERMARK, MIN_WATERMARK
from balanced_source.documents.alignment import GroupWatermark, SourceWatermark
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.lags import MOST_SPLITS, to_metrics
from balanced_source.documents.report import HostReport
from balanced_source_operator.page.exhibit import Exhibit
from balanced_source_operator.runtime.audience import SourceMoment

A, B = ("main", "orders", 0), ("main", "orders", 1)
ASSIGNMENT = Assignment(epoch=4, parallelism=2, incarnations={"0": 1}, owners={A: 0, B: 1})
REPORT = HostReport(
    incarnation=1,
    instance="i",
    epoch=4,
    parallelism=2,
    owners={A: 0, B: 1},
    positions={A: 10, B: 20},
    lag=7,
    heartbeat=100.0,
    metrics=to_metrics({A: 7, B: 0}, {}),
)
STATUS = {
    "conditions": [
        {"type": "Ready", "status": "True", "reason": "Reading", "message": "2 readers"}
    ],
    "readers": 2,
    "acknowledgedEpoch": 4,
    "pendingSplits": 0,
    "lag": 7,
    "message": "reading",
    "application": {"name": "orders-1", "state": "Running"},
}
SEEN = SourceMoment(desired=2, status=STATUS, assignment=ASSIGNMENT, reports={"0": REPORT})


def exhibit(*looks: SourceMoment) -> Exhibit:
    made = Exhibit("shop", "orders")
    for number, seen in enumerate(looks):
        made.sample(seen, 10.0 * number)
    return made


def later(**changes: Any) -> HostReport:
    return replace(REPORT, heartbeat=110.0, positions={A: 30, B: 20}, **changes)


def cells(shown: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {
        cell["split"]: (cell["lag"], cell["rate"]) for row in shown["rows"] for cell in row["cells"]
    }


def test_a_source_in_a_row() -> None:
    assert exhibit(SEEN, replace(SEEN, reports={"0": later()})).summary(SEEN) == {
        "namespace": "shop",
        "name": "orders",
        "ready": "True",
        "reason": "Reading",
        "readers": 2,
        "desired": 2,
        "splits": 2,
        "pending": 0,
        "epoch": 4,
        "acknowledged": 4,
        "lag": 7,
        "rate": 2.0,
    }


def test_before_the_first_turn_everything_is_unknown() -> None:
    row = exhibit(SourceMoment()).summary(SourceMoment())

    assert {value for key, value in row.items() if key not in ("namespace", "name")} == {None}
    assert exhibit(SourceMoment()).splits(SourceMoment())["rows"] == []
    assert exhibit(SourceMoment()).detail(SourceMoment())["canPlan"] is False


def test_zero_epochs_and_readers_are_unknown_and_no_lag_is_zero() -> None:
    seen = replace(SEEN, status={**STATUS, "acknowledgedEpoch": 0, "readers": 0, "lag": 0})
    row = exhibit(seen).summary(seen)

    assert (row["acknowledged"], row["readers"], row["lag"]) == (None, None, 0)


def test_everything_about_a_source() -> None:
    told = exhibit(SEEN, SEEN).detail(SEEN)

    assert told["series"] == [[0.0, 7, None], [10.0, 7, None]]
    assert [entry["epoch"] for entry in told["timeline"]] == [4]
    assert told["conditions"][0]["reason"] == "Reading"
    assert (told["application"], told["message"], told["alignment"]) == ("Running", "reading", None)


def test_splits_have_their_lag_and_between_two_reports_a_rate() -> None:
    shown = Exhibit("shop", "orders")

    assert cells(shown.splits(SEEN)) == {"main/orders/0": (7, None), "main/orders/1": (0, None)}
    assert cells(shown.splits(replace(SEEN, reports={"0": later()}))) == {
        "main/orders/0": (7, 2.0),
        "main/orders/1": (0, 0.0),
    }
    assert cells(shown.splits(replace(SEEN, reports={"0": later()})))["main/orders/0"] == (
        7,
        2.0,
    ), "the same report"


def test_reports_of_silent_and_ended_hosts_are_not_shown_as_current() -> None:
    for seen in (
        replace(SEEN, silent=frozenset({"0"}), status={}),
        replace(SEEN, reports={"0": replace(REPORT, instance="")}, status={}),
    ):
        shown = exhibit(SEEN, seen)
        assert cells(shown.splits(seen)) == {
            "main/orders/0": (None, None),
            "main/orders/1": (None, None),
        }
        assert (shown.summary(seen)["lag"], shown.summary(seen)["rate"]) == (None, None)


def test_sums_per_reader_of_a_previous_epoch_are_not_those_of_the_new_readers() -> None:
    owners = {("main", "orders", number): 0 for number in range(MOST_SPLITS + 1)}
    many = replace(ASSIGNMENT, owners=owners)
    report = replace(REPORT, metrics={"readerLags": [[0, 5], [1, 2]]})

    now = Exhibit("s", "o").splits(replace(SEEN, assignment=many, reports={"0": report}))
    former = Exhibit("s", "o").splits(
        replace(SEEN, assignment=replace(many, epoch=5), reports={"0": report})
    )

    assert [row["cells"][0]["lag"] for row in now["rows"]] == [5, 2]
    assert [row["cells"][0]["lag"] for row in former["rows"]] == [None, None]


def test_without_a_status_the_reports_say_it() -> None:
    """Local mode has no status."""
    local = replace(SEEN, status={}, notes=("broker:9092 does not answer",))
    told = exhibit(local).detail(local)

    assert (told["lag"], told["readers"], told["acknowledged"], told["ready"]) == (7, 2, 4, None)
    assert told["notes"] == ["broker:9092 does not answer"]
    unknown = replace(local, reports={"0": REPORT, "1": replace(REPORT, lag=None)})
    assert exhibit(unknown).summary(unknown)["lag"] is None


def test_invalid_times_of_the_alignment_are_rejected() -> None:
    own = SourceWatermark(group="g", watermark=MIN_WATERMARK, max_drift=5000, idle_timeout=30.0)
    aligned = {**REPORT.metrics, "alignedTo": 1700000000000}
    seen = replace(
        SEEN,
        assignment=replace(
            ASSIGNMENT, alignment=GroupWatermark(watermark=MAX_WATERMARK, heartbeat=1.0)
        ),
        reports={"0": replace(REPORT, alignment=own, metrics=aligned)},
    )

    assert exhibit(seen).detail(seen)["alignment"] == {
        "group": "g",
        "own": {"word": "not known yet"},
        "others": {"word": "idle"},
        "maxDrift": 5000,
        "alignedTo": 1700000000000,
    }


def test_data_per_split_is_kept_only_for_viewers() -> None:
    shown = exhibit(SEEN, SEEN)
    assert not shown.keeps_splits
    shown.splits(SEEN)
    assert shown.keeps_splits
    shown.forget_splits()
    assert not shown.keeps_splits
