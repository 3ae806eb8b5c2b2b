"""A query that ends by itself registers before it waits for its splits.

The driver may have to list them.
"""

from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.options import Options
from balanced_source_spark.planner import StreamPlanner
from balanced_source_spark.stream_reader import UNLIMITED


class Runtime:
    """Notes what it is asked, and never sees an assignment."""

    def __init__(self) -> None:
        self.asked = list[str]()

    def committed(self, offset: Any, progress: Any) -> None:
        self.asked.append("committed")

    def newest_assignment(self, *, timeout: float) -> None:
        """There is none."""

    def check_named(self) -> None:
        """An operator reports what is missing."""

    def first_assignment(self, *, timeout: float) -> Any:
        self.asked.append("first assignment")
        raise ChannelError("none")


@pytest.mark.parametrize("limit", [UNLIMITED, ReadAllAvailable()], ids=["AvailableNow", "Once"])
def test_the_driver_is_registered_when_it_waits(limit: ReadLimit) -> None:
    planner, runtime = StreamPlanner(Options(source="orders")), Runtime()
    planner.__dict__["_runtime"] = runtime
    if limit is UNLIMITED:
        planner.prepareForTriggerAvailableNow()

    with pytest.raises(ChannelError):
        planner.latestOffset(planner.initialOffset(), limit)

    assert runtime.asked == ["committed", "first assignment"]
