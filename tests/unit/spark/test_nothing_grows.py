"""A planning process runs for months, and topics are named by day: what is gone is forgotten."""

from collections.abc import Iterator
from typing import Any

import pytest

from balanced_source.connectors.kafka import OnDataLoss, ReadLimits
from balanced_source.coordinator import SourceChanged
from balanced_source_spark.channels.embedded import EmbeddedChannel
from balanced_source_spark.kafka.admission import Admission
from balanced_source_spark.kafka.record_sizes import RecordSizes
from support.growth import growing, sizes
from support.planned_query import BrokerAdmin, PlannedQuery
from support.world import Broker, kafka_source


class Days:
    """A query over topics, or clusters, of which each lives for a day."""

    def __init__(self, *, of_clusters: bool, loses: bool = False) -> None:
        self._of_clusters, self._loses = of_clusters, loses
        self._number = 0
        self.broker = Broker()
        self._create()
        self.query = PlannedQuery(source=self._source(), broker=self.broker)
        self.query.admin.commit = lambda *_: None  # type: ignore[attr-defined]
        self.query.admin.high_watermarks = self._high_watermarks  # type: ignore[attr-defined]
        hooks = self.query.hooks._made
        hooks.__dict__["_admission"] = Admission(RecordSizes(lambda *_: 10.0))
        self._read()

    def _source(self) -> Any:
        return kafka_source(
            self._cluster,
            limits=ReadLimits(max_bytes=10**9),
            commit_group="lag",
            on_data_loss=OnDataLoss.CONTINUE,
            discovery_interval=0.02,
            retention=0.0,
        )

    @property
    def _cluster(self) -> str:
        return f"c{self._number}" if self._of_clusters else "c"

    def _high_watermarks(self, _cluster: Any, split_ids: Any) -> Any:
        return {s: self.broker.ends[s] for s in split_ids if s in self.broker.ends}

    def _create(self) -> None:
        name = f"day-{self._number}"
        self.broker.topic_ids[self._cluster, name] = f"id-{self._number}"
        self.broker.create(self._cluster, name, range(2), begin=3, end=9)

    def _read(self) -> None:
        today = [s for s in self.broker.ends if s[1] == f"day-{self._number}"]
        self.query.trigger_until(
            lambda: dict(self.query.last.positions) == dict.fromkeys(today, 9), "the day to be read"
        )

    def next(self) -> None:
        """A new topic, or cluster, with another leader; the one of the day before is gone."""
        before = list(self.broker.ends)
        self._number += 1
        self._create()
        self.query.admin.term += 1
        self.query.trigger()  # the old one is checked, too
        if self._of_clusters:
            loop = self.query.channel._loop
            assert loop is not None
            loop.put(SourceChanged(self._source()))
        self.broker.delete(before)
        self._read()

    def look(self) -> Any:
        return sizes(self.query.planner, without=(EmbeddedChannel, BrokerAdmin))


@pytest.fixture(params=["topics", "clusters"])
def days(request: pytest.FixtureRequest) -> Iterator[Days]:
    made = Days(of_clusters=request.param == "clusters")
    yield made
    made.query.close()


def test_no_container_of_the_planning_process_grows_with_the_days(days: Days) -> None:
    assert growing(days.look, days.next) == []
