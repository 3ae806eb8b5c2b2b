"""A Spark checkpoint is lost while the operator has not stored what the driver reported.

The new driver's first report replaces that report, so it repeats it.
"""

from collections.abc import Callable

import pytest

from balanced_source.api import SplitId
from balanced_source.documents import report as report_document
from support.stage import Stage
from support.world import UID, Driver

S: SplitId = ("c", "t", 0)


def reads_unseen(stage: Stage) -> Driver:
    """The driver of host 0 reads and reports; the operator sees nothing of it."""
    driver = stage.drivers["0"]
    stage.more(10)
    driver.batch()
    driver.batch()
    driver.report()
    assert stage.read(0)[S] == 20
    return driver


def loses_checkpoint(driver: Driver) -> None:
    driver.offsets, driver.committed = [], 0
    driver.start()


def one_host() -> Stage:
    return Stage(readers=1, hosts=1).topic("t", 1, end=10).running()


def last_report(stage: Stage) -> report_document.HostReport:
    return report_document.decode(stage.store.reports["0"], source=UID)


@pytest.mark.parametrize("restarts", [0, 1, 2])
def test_reading_continues_where_the_former_driver_last_reported(restarts: int) -> None:
    """However many drivers come and go before one of them is assigned something."""
    stage = one_host()
    driver = reads_unseen(stage)
    loses_checkpoint(driver)
    for _ in range(restarts):
        driver.start()

    stage.operator_starts()
    stage.operator.see_reports()
    stage.discovers()

    assert stage.positions()[S] == 20
    stage.adopts().more(5).adopts()
    assert [offset for (_, offset) in driver.delivered] == list(range(25))


def test_the_former_report_is_repeated_until_an_epoch_is_adopted() -> None:
    stage = one_host()
    driver = reads_unseen(stage)
    loses_checkpoint(driver)
    former = last_report(stage).former
    assert former is not None
    assert (former.incarnation, former.positions) == (1, {S: 20})

    stage.operator_starts()
    stage.operator.see_reports()
    driver.report()
    assert last_report(stage).former == former

    stage.adopts()
    assert last_report(stage).former is None


def test_a_checkpoint_that_knows_as_much_repeats_nothing() -> None:
    stage = one_host()
    driver = reads_unseen(stage)
    driver.start()

    assert last_report(stage).former is None


def is_taken_away_while_its_host_is_gone(stage: Stage) -> None:
    stage.fails(0)
    stage.moves(S, 1)


def was_taken_away_before(stage: Stage) -> None:
    stage.moves(S, 1)


@pytest.mark.parametrize("take", [is_taken_away_while_its_host_is_gone, was_taken_away_before])
@pytest.mark.parametrize("goes_back", [False, True])
def test_a_split_on_its_way_to_another_host_starts_where_it_was(
    take: Callable[[Stage], None], *, goes_back: bool
) -> None:
    """Also if it goes back before its host has let go of it."""
    stage = Stage(readers=2, hosts=2).topic("t", 2, end=10).running()
    driver = reads_unseen(stage)
    take(stage)
    loses_checkpoint(driver)
    stage.operator.see_reports()
    if goes_back:
        stage.moves(S, 0)

    stage.adopts().adopts().adopts()

    delivered = [
        offset for other in stage.drivers.values() for (s, offset) in other.delivered if s == S
    ]
    assert sorted(delivered) == list(range(20))
