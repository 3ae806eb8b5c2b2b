"""How much the load of `make chaos` produces."""

import pytest

from chaos.light.load import Load

pytestmark = pytest.mark.unit


def test_a_load_ends_after_a_minute_of_its_rate() -> None:
    """However long the faults take."""
    load = Load("main", "127.0.0.1:1", {"orders": 1}, rate=100, seed=0)

    assert sum(10 for _ in range(2000) if load.take_turn()) == 6000


def test_a_paused_load_produces_nothing() -> None:
    load = Load("main", "127.0.0.1:1", {"orders": 1}, rate=100, seed=0)
    load.pause()

    assert not load.take_turn()
    load.resume()
    assert load.take_turn()
