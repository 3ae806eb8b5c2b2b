"""A bounded source stays finished, whoever restarts or rescales after the last record."""

import pytest

from support.stage import Stage, bounded_source

pytestmark = pytest.mark.unit


def read_to_the_end(readers: int = 2) -> Stage:
    return (
        Stage(readers=readers, hosts=1, source=bounded_source("c")).topic("t", 3, end=5).running()
    )


def is_finished(stage: Stage) -> bool:
    return bool(stage.operator.coordinator.enumerator.is_finished())


def test_a_host_that_registers_with_everything_read_finishes_the_source() -> None:
    """Its registration may be its only report: it stops right after it."""
    stage = Stage(readers=2, hosts=1, source=bounded_source("c")).topic("t", 3, end=5)
    stage.operator_starts().discovers().registers(0)
    stage.drivers["0"].see_assignment()
    stage.drivers["0"].batch()
    assert not is_finished(stage)

    stage.fails(0).registers(0)

    assert is_finished(stage)


@pytest.mark.parametrize("readers", [1, 3])
def test_a_rescale_after_the_end_leaves_the_source_finished(readers: int) -> None:
    """No application runs any more that could report the splits of a dropped reader again."""
    stage = read_to_the_end().fails(0)
    assert is_finished(stage)

    stage.rescales(readers)
    assert is_finished(stage)

    stage.operator_starts().discovers()
    assert is_finished(stage)
