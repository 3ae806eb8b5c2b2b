"""A short part of `make bench-autoscale`.

The simulation is deterministic, and the product does what it claims.
"""

import re
from pathlib import Path

import pytest
from benchmarks.autoscaling.__main__ import FIRST_READERS
from benchmarks.autoscaling.rivals import Own, PodAutoscaler
from benchmarks.autoscaling.shapes import RECORDING, SHAPES, SPLITS, recorded
from benchmarks.autoscaling.world import CAPACITY, World

from balanced_source_operator.controller.autoscaling import Policy
from testbed.versions import CHECKOUT

BY_NAME = {shape.name: shape for shape in (*SHAPES, recorded(RECORDING))}
PAGE = (CHECKOUT / "docs" / "autoscaling.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| ([a-z ]+) \|((?: [^|]+ \|){8})$", re.MULTILINE)
FIGURES = {row[1]: row[2].split("|") for row in _ROW.finditer(PAGE)}
"""Load → the other cells of its row on the page."""


@pytest.mark.parametrize("name", BY_NAME)
def test_the_direction_changes_at_most_four_times_an_hour_and_the_page_is_right(name: str) -> None:
    """Both in one, since a day takes seconds to simulate."""
    own = World(FIRST_READERS).run(BY_NAME[name].rates(seed=1), Own())
    lag, _, hours, _, reversals, *_ = map(str.strip, FIGURES[name])

    assert own.reversals <= 4
    assert own.reversals == int(reversals)
    assert own.lag == pytest.approx(float(lag), rel=0.01)
    assert own.readers == pytest.approx(float(hours), rel=0.01)


def test_a_recorded_rate_lasts_until_the_next_one(tmp_path: Path) -> None:
    file = tmp_path / "clicks.csv"
    file.write_text("# from a log\n0,1000\n600,0\n900,2500.5\n1800,0\n", encoding="utf-8")
    shape = recorded(file)

    assert (shape.name, shape.hours) == ("clicks", 0.5)
    assert [shape.total(at) for at in (0, 595, 600, 899, 900, 1795)] == [
        *(1000, 1000, 0, 0, 2500.5, 2500.5)
    ]
    ticks = list(shape.rates(seed=1))
    assert len(ticks) == 360
    assert [sum(rates) == 0 for rates in ticks] == [600 <= 5 * n < 900 for n in range(360)]


def test_the_recording_is_the_day_that_it_says() -> None:
    shape = recorded(RECORDING)

    assert shape.hours == 24
    assert sum(shape.total(900 * quarter) / 600 for quarter in range(96)) == 1001  # departures


def test_a_step_is_followed_with_less_lag_and_fewer_readers_than_by_lag() -> None:
    load = list(BY_NAME["step"].rates(seed=7))
    own = World(4).run(load, Own())
    rival = World(4).run(load, PodAutoscaler(target=5 * CAPACITY, window=300, step=0.1, fewest=1))

    assert own.lag < rival.lag
    assert own.readers < rival.readers
    assert own.reversals <= 4


def test_the_same_seed_gives_the_same_outcome() -> None:
    runs = [World(4).run(BY_NAME["spike"].rates(seed=7), Own()) for _ in range(2)]

    assert runs[0] == runs[1]


def test_every_record_is_read_or_unread() -> None:
    load = list(BY_NAME["hot key"].rates(seed=7))
    world = World(4)
    world.run(load, Own(policy=Policy(min_readers=2, max_readers=8)))

    arrived = 5 * sum(map(sum, load))
    assert len(world.read) == SPLITS
    assert abs(arrived - sum(world.read) - world.unread) < 1e-6 * arrived
