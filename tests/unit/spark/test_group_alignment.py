"""What a driver makes of news about the other sources of its group, and of silence."""

from dataclasses import replace

import pytest

from balanced_source.api import MAX_WATERMARK, MIN_WATERMARK
from balanced_source.documents.alignment import GroupWatermark
from balanced_source.documents.assignment import Assignment
from balanced_source_spark.group_alignment import GroupAlignment

IDLE = 30.0


class Operator:
    """What was published last, and the time."""

    def __init__(self) -> None:
        self.newest: Assignment | None = None
        self.now = 0.0

    def says(self, watermark: int) -> None:
        base = self.newest or Assignment(epoch=1, parallelism=1)
        self.newest = replace(
            base, alignment=GroupWatermark(watermark=watermark, heartbeat=self.now)
        )


@pytest.fixture
def operator() -> Operator:
    return Operator()


@pytest.fixture
def group(operator: Operator) -> GroupAlignment:
    return GroupAlignment(
        "g",
        max_drift=1000,
        idle_timeout=IDLE,
        newest=lambda: operator.newest,
        clock=lambda: operator.now,
    )


def test_the_last_watermark_holds_for_the_idle_timeout(
    operator: Operator, group: GroupAlignment
) -> None:
    operator.says(500)
    assert group.others() == 500

    operator.now = IDLE - 1
    assert group.others() == 500
    operator.now = IDLE
    assert group.others() == MAX_WATERMARK, "the operator is away: only the own splits count"


def test_a_repeated_watermark_is_a_sign_of_life(operator: Operator, group: GroupAlignment) -> None:
    operator.says(500)
    group.others()

    operator.now = IDLE - 1
    operator.says(500)
    group.others()
    operator.now = IDLE + 5

    assert group.others() == 500


def test_the_wait_for_other_sources_at_the_start_ends(
    operator: Operator, group: GroupAlignment
) -> None:
    operator.newest = Assignment(epoch=1, parallelism=1)

    assert group.others() == MIN_WATERMARK
    operator.now = IDLE
    assert group.others() == MAX_WATERMARK


def test_a_group_of_one_needs_no_sign_of_life(operator: Operator, group: GroupAlignment) -> None:
    operator.says(MAX_WATERMARK)

    assert group.others() == MAX_WATERMARK


def test_a_document_that_says_nothing_of_others_changes_nothing(
    operator: Operator, group: GroupAlignment
) -> None:
    operator.says(500)
    group.others()

    operator.newest = Assignment(epoch=2, parallelism=1)

    assert group.others() == 500
