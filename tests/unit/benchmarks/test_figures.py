"""Ratios of a benchmark, the comparison with an earlier run, and a rival's best settings."""

from typing import Any

from benchmarks.bench_tune import GAIN, KNOBS, Settings, search
from benchmarks.reading.compare import changes
from benchmarks.reading.contestants import OURS, SPARK_TUNED, TEN_MS
from benchmarks.reading.figures import Rounds, summary


def run(ours: list[float], theirs: list[float]) -> dict[str, Any]:
    rounds: Rounds = {
        OURS.name: [{"speed": v} for v in ours],
        SPARK_TUNED.name: [{"speed": v} for v in theirs],
    }
    return {"cases": {"backlog": summary(rounds, ("speed",), higher=True)}}


def test_a_ratio_is_taken_within_each_round() -> None:
    result = run([10, 1, 30], [5, 1, 10])["cases"]["backlog"]
    assert result["ratios"][SPARK_TUNED.name][OURS.name]["speed"] == {
        "min": 1,
        "median": 2,
        "max": 3,
        "n": 3,
    }
    assert result["rounds"][OURS.name] == [{"speed": 10}, {"speed": 1}, {"speed": 30}]


def test_lower_times_give_ratios_above_1() -> None:
    rounds: Rounds = {OURS.name: [{"trigger": 100}], SPARK_TUNED.name: [{"trigger": 150}]}
    ratio = summary(rounds, ("trigger",), higher=False)["ratios"][SPARK_TUNED.name][OURS.name][
        "trigger"
    ]
    assert ratio["median"] == 1.5


def test_a_ratio_that_fell_by_more_than_the_tolerance_is_a_regression() -> None:
    earlier = run([200], [100])
    same, worse = run([382], [200]), run([188], [100])
    assert [c.is_regression for c in changes(earlier, same)] == [False]
    (change,) = changes(earlier, worse)
    assert change.is_regression
    assert str(change) == "backlog: ours to spark, tuned, speed: 2.00 before, 1.88 now (-6 %)"


def test_a_case_that_was_not_measured_before_is_not_compared() -> None:
    assert list(changes({"cases": {}}, run([1], [1]))) == []


def test_the_search_keeps_gains_and_drops_losses() -> None:
    worth = {
        "max.poll.records": {"10000": 1.5, "50000": 1.5 * (GAIN - 0.01)},
        "check.crcs": {"false": 1.1},
    }

    def speed(settings: Settings) -> float:
        product = 1.0
        for knob, value in settings.items():
            product *= worth.get(knob, {}).get(value, 0.9 if knob not in TEN_MS else 1.0)
        return product

    assert set(worth) <= set(KNOBS)
    assert search("rival", speed, rounds=3) == {
        **TEN_MS,
        "max.poll.records": "10000",
        "check.crcs": "false",
    }
