"""The arithmetic behind a soak's verdict."""

import random

import pytest

from soak.slopes import LIMITS, Sample, behind, judge, rates, slope


def run(
    hours: float = 2.0, *, mib: float = 0.0, threads: float = 0.0, requests: float = 0.0
) -> list[Sample]:
    """Samples of a process with a steep warm-up, with noise, and then growth of so much an hour."""
    dice = random.Random(7)
    samples, count = [], 0.0
    for number in range(int(hours * 240)):
        at = number / 240
        count += 15 * (30 + requests * at) + dice.gauss(0, 2)
        warm = 50 * min(at, 0.3)
        figures = {
            "mib": 100 + warm + mib * at + dice.gauss(0, 0.3),
            "threads": 20 + threads * at,
            "fds": 9.0,
        }
        samples.append(
            Sample(
                at=at,
                processes={"operator": figures, "driver": {**figures, "mib": 90.0}},
                requests=count,
            )
        )
    return samples


def test_a_line_is_found_in_noise() -> None:
    dice = random.Random(3)
    found = slope([(x / 100, 5 + 3 * x / 100 + dice.gauss(0, 0.1)) for x in range(200)])

    assert found.per_hour == pytest.approx(3, abs=0.1)
    assert found.mean == pytest.approx(8, abs=0.2)


@pytest.mark.parametrize("points", [[], [(0.0, 1.0)], [(0.0, 1.0), (1.0, 9.0)], [(1.0, 1.0)] * 5])
def test_too_few_points_are_flat(points: list[tuple[float, float]]) -> None:
    assert slope(points).per_hour == 0


def test_constant_figures_pass_and_the_warm_up_does_not_count() -> None:
    verdict = judge(run(), warm_up=1 / 3)

    assert not verdict.failures
    assert str(verdict).startswith("soak: OK hours=1.66 slope_mib_h=")
    assert verdict.requests == pytest.approx(30, abs=0.5)


def test_growing_figures_are_named() -> None:
    verdict = judge(run(mib=3.0, threads=2.0), warm_up=1 / 3)

    assert [failure.split(" grows")[0] for failure in verdict.failures] == [
        "driver: threads",
        "operator: mib",
        "operator: threads",
    ]
    assert verdict.worst["mib"] == pytest.approx(3, abs=0.3)
    assert str(verdict).startswith("soak: FAILED")


@pytest.mark.parametrize("change", [6.0, -6.0])
def test_a_rate_of_requests_that_changes_is_a_failure(change: float) -> None:
    (failure,) = judge(run(requests=change), warm_up=1 / 3).failures

    assert "requests per second change" in failure


def test_a_short_run_is_judged_by_its_growth_as_a_whole() -> None:
    """In its minutes, memory grows by the warm-up: per hour, that would be far beyond the limit."""
    assert not judge(run(0.1), warm_up=0.03, is_short=True).failures

    failures = judge(run(0.1, threads=500.0), warm_up=0.03, is_short=True).failures
    assert [failure.split(" grows")[0] for failure in failures] == [
        "driver: threads",
        "operator: threads",
    ]


def test_a_counter_that_restarts_gives_no_negative_rate() -> None:
    samples = [
        Sample(at=at / 3600, processes={}, requests=count)
        for at, count in ((0, 100), (10, 200), (20, 5), (30, 55))
    ]

    assert [round(rate, 3) for _, rate in rates(samples)] == [10, 5]


def test_every_limit_is_that_of_the_promise() -> None:
    assert LIMITS == {"mib": 1.0, "threads": 0.1, "fds": 0.1}


def test_a_backlog_that_grew_is_told_of_its_first_and_last_quarter() -> None:
    samples = [
        Sample(at=at / 10, processes={}, requests=0, behind=1000 if at < 10 else 3000)
        for at in range(20)
    ]

    assert behind(samples, warm_up=0.4) == (1000, 3000)
    assert behind(samples, warm_up=9.0) == (0, 0)
