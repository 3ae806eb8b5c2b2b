"""Values that tests of the autoscaler begin with."""

from typing import Final

from balanced_source_operator.controller.autoscaling.needs import Load
from balanced_source_operator.controller.autoscaling.samples import Interval

LOAD: Final = Load(
    arrival=400.0,
    demand=400.0,
    behind=0.0,
    unread=0,
    has_backlog=False,
    splits=12,
    hottest=0.0,
    hottest_split="c/t/0",
    is_countable=True,
    is_shared=False,
)
"""Readers keep up with a load that is spread evenly."""

STEADY: Final = Interval(
    seconds=100.0,
    readers=4,
    splits=12,
    rate=100.0,
    arrival=100.0,
    available_before=0,
    available=0,
    unread=0,
    busiest=40.0,
    hottest=10.0,
    hottest_split=("c", "t", 0),
    is_steady=True,
)
"""Nothing has waited."""
