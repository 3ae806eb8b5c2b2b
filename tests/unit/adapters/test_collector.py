"""The collector of a process that keeps many objects."""

import gc
from collections.abc import Iterator

import pytest

from balanced_source_adapters.collector import YOUNG, YOUNG_BESIDE_KOPF, collect_rarely


@pytest.fixture(autouse=True)
def threshold() -> Iterator[tuple[int, int, int]]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield before
    gc.set_threshold(*before)


def test_it_looks_less_often() -> None:
    collect_rarely()

    assert gc.get_threshold() == (YOUNG, 10, 10)


def test_the_operator_looks_more_often_than_that() -> None:
    collect_rarely(YOUNG_BESIDE_KOPF)

    assert gc.get_threshold() == (YOUNG_BESIDE_KOPF, 10, 10)
    assert YOUNG_BESIDE_KOPF < YOUNG


@pytest.mark.parametrize("chosen", [(0, 10, 10), (2 * YOUNG, 5, 5)])
def test_what_was_chosen_before_stays(chosen: tuple[int, int, int]) -> None:
    gc.set_threshold(*chosen)

    collect_rarely()

    assert gc.get_threshold() == chosen
