"""A driver long without a report stops planning only where others may get its splits."""

import pytest

from balanced_source.documents import assignment as assignment_document
from balanced_source.documents.assignment import Assignment
from balanced_source_spark.report_lease import ReportLease


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("limit", "silence", "may_plan"), [(60.0, 60.0, True), (60.0, 60.1, False), (None, 1e9, True)]
)
def test_a_report_allows_planning_for_some_time(
    limit: float | None, silence: float, may_plan: bool
) -> None:
    clock = Clock()
    lease = ReportLease(clock)
    lease.renew(lease.now())

    clock.now += silence

    assert lease.allows(limit) is may_plan


def test_the_time_counts_from_before_the_report_was_written() -> None:
    """A write that takes long is seen by the operator before it is answered."""
    clock = Clock()
    lease = ReportLease(clock)
    begun_at = lease.now()
    clock.now += 50
    lease.renew(begun_at)

    clock.now += 11

    assert not lease.allows(60.0)


def test_planning_continues_when_a_report_is_written_again() -> None:
    clock = Clock()
    lease = ReportLease(clock)
    clock.now += 61
    assert not lease.allows(60.0)

    lease.renew(lease.now())

    assert lease.allows(60.0)


def test_the_limit_is_in_the_assignment_and_raises_no_version() -> None:
    plain = Assignment(epoch=3, parallelism=2)
    limited = Assignment(epoch=3, parallelism=2, report_within=60.0)

    read = assignment_document.decode(assignment_document.encode(limited, source="u"), source="u")

    assert read == limited
    assert assignment_document.version_of(limited) == assignment_document.version_of(plain)
    assert "reportWithin" not in assignment_document.encode(plain, source="u")
