"""Waiting is over after an unbroken time."""

from balanced_source_operator.runtime.deadline import Deadline


def test_only_an_unbroken_time_counts() -> None:
    now = 0.0
    deadline = Deadline(300, clock=lambda: now)
    assert not deadline.is_over()

    deadline.note(waits=True)
    now = 299.0
    deadline.note(waits=True)
    assert not deadline.is_over()
    now = 300.0
    assert deadline.is_over()

    deadline.note(waits=False)
    assert not deadline.is_over()
    deadline.note(waits=True)
    now = 599.0
    assert not deadline.is_over()
