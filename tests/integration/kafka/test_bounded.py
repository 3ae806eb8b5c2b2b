"""A bounded source on real Spark and brokers, with the operator's code in local mode."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from balanced_source.documents.stream_offset import FINISHED
from balanced_source_operator.local import LocalOperator
from balanced_source_spark import stop_when_finished
from support.builders import spec_json
from support.queries import Collector, start
from testbed.kafka import KafkaCluster
from testbed.waiting import wait_until

pytestmark = pytest.mark.thorough

ONE_OR_MANY = pytest.mark.parametrize(
    "limits", [{}, {"limits": {"maxOffsetsPerTrigger": 40}}], ids=["one", "many"]
)
"""Micro-batches. Without limits, which is the default, all there is makes one."""


class Bounded:
    """A bounded source in local mode, a query on it, and its checkpoint."""

    def __init__(self, spark: SparkSession, bootstrap: str, topic: str, folder: Path) -> None:
        self.topic = topic
        self.sink = Collector()
        self._spark = spark
        self._bootstrap = bootstrap
        self._folder = folder
        self._operators: list[LocalOperator] = []

    @property
    def checkpoint(self) -> Path:
        return self._folder / "ck"

    def operator(self, *clusters: str, **changes: Any) -> LocalOperator:
        """Starts local mode with these clusters, all of them the one broker."""
        settings = {
            "clusters": [
                {"name": name, "bootstrapServers": self._bootstrap}
                for name in clusters or ("main",)
            ],
            "subscription": {"topics": [self.topic]},
            "stoppingOffsets": {"type": "Latest"},
            **changes,
        }
        file = self._folder / "source.yaml"
        file.write_text(
            yaml.safe_dump({"spec": spec_json(parallelism=2, source={"kafka": settings})})
        )
        self._operators.append(LocalOperator(file, self._folder / "documents"))
        self._operators[-1].start()
        return self._operators[-1]

    def run(self, operator: LocalOperator) -> StreamingQuery:
        """Runs the query until it ends by itself or fails."""
        query = start(
            self._spark, self.sink, self.checkpoint, assignmentDir=str(self._folder / "documents")
        )
        stop_when_finished(query)
        try:
            wait_until(
                lambda: operator.look() or not query.isActive, 120, "the query to end or to fail"
            )
        finally:
            query.stop()
        return query

    def is_step(self, number: int) -> bool:
        """Returns whether a logged micro-batch reads records, or closes the query."""
        logged = self.checkpoint / "offsets"
        before, after = (
            json.loads((logged / str(n)).read_text().splitlines()[-1]) if n >= 0 else {}
            for n in (number - 1, number)
        )
        has_moved = number > 0 and before["positions"] != after["positions"]
        return bool(has_moved or after.get(FINISHED))

    def close(self) -> None:
        for one in self._operators:
            one.close()


@pytest.fixture
def bounded(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path
) -> Iterator[Bounded]:
    made = Bounded(spark, kafka.bootstrap, topic, tmp_path)
    yield made
    made.close()


@pytest.mark.scenario("A5")
@ONE_OR_MANY
def test_the_query_ends_by_itself_when_all_stops_are_reached(
    kafka: KafkaCluster, bounded: Bounded, limits: dict[str, Any]
) -> None:
    """One-time discovery says no more splits; what is produced after the start is not read.

    The source is finished.
    """
    kafka.admin.produce(bounded.topic, [b"x"] * 500, partition=0)
    kafka.admin.produce(bounded.topic, [b"x"] * 20, partition=1)
    stops = {"type": "Specific", "offsets": {bounded.topic: {"0": 400}}}
    made = bounded.operator(stoppingOffsets=stops, **limits)
    wait_until(lambda: made.coordinator.state.epoch > 0, 30, "the stops to be resolved")
    kafka.admin.produce(bounded.topic, [b"late"] * 30, partition=1)

    assert bounded.run(made).exception() is None

    wait_until(
        lambda: made.look() or made.coordinator.enumerator.is_finished(),
        30,
        "the source to be finished",
    )
    want = [(bounded.topic, 0, offset) for offset in range(400)] + [
        (bounded.topic, 1, offset) for offset in range(20)
    ]
    assert bounded.sink.records == Counter(want)


@pytest.mark.parametrize(
    "limits", [{}, {"limits": {"maxOffsetsPerTrigger": 100}}], ids=["one", "two"]
)
def test_a_bounded_source_that_restarts_at_each_step_is_delivered_once(
    kafka: KafkaCluster, bounded: Bounded, limits: dict[str, Any]
) -> None:
    """Two clusters; the sink fails before and after it writes each micro-batch, also the last.

    Not so micro-batches that only adopt an epoch: each restart brings another one, and it would go
    on forever.
    """
    kafka.admin.produce(bounded.topic, [b"x"] * 60, partition=0)
    kafka.admin.produce(bounded.topic, [b"x"] * 10, partition=2)
    made, failed = bounded.operator("main", "other", **limits), set[tuple[str, int]]()

    def fails_once(when: str, number: int) -> bool:
        is_first = (when, number) not in failed and bounded.is_step(number)
        if not is_first:
            return False
        failed.add((when, number))
        return True

    bounded.sink.fail_before = lambda number: fails_once("before", number)
    bounded.sink.fail_after = lambda number: fails_once("after", number)
    while bounded.run(made).exception() is not None:
        pass

    want = [
        (name, p, o)
        for name in ("main", "other")
        for p, count in ((0, 60), (2, 10))
        for o in range(count)
    ]
    assert Counter(
        (row.cluster, row.partition, row.offset) for row in bounded.sink.rows
    ) == Counter(want)
    steps = {number for number in bounded.sink.batches if bounded.is_step(number)}
    assert failed == {(when, number) for when in ("before", "after") for number in steps}
    assert len(steps) == (3 if limits else 2), "with records, and the closing one"
    assert bounded.sink.batches[max(bounded.sink.batches)] == [], "the closing micro-batch is empty"


def test_a_query_that_starts_again_after_its_end_ends_again(
    kafka: KafkaCluster, bounded: Bounded
) -> None:
    """The program may die after the closing micro-batch and before it stops the query."""
    kafka.admin.produce(bounded.topic, [b"x"] * 10, partition=0)
    made = bounded.operator()

    for _ in range(3):
        assert bounded.run(made).exception() is None

    assert bounded.sink.records == Counter((bounded.topic, 0, offset) for offset in range(10))


@pytest.mark.parametrize("is_committed", [False, True])
def test_a_closing_micro_batch_of_version_0_1_0_is_not_read(
    kafka: KafkaCluster, bounded: Bounded, *, is_committed: bool
) -> None:
    """That version logged the starts of the micro-batch before it once more."""
    kafka.admin.produce(bounded.topic, [b"x"] * 10, partition=0)
    made = bounded.operator()
    bounded.sink.fail_before = lambda _: bool(bounded.sink.rows)
    assert "fails before it is written" in str(bounded.run(made).exception())
    _close_as_0_1_0(bounded.checkpoint, is_committed=is_committed)
    bounded.sink.fail_before = lambda _: False

    assert bounded.run(made).exception() is None

    assert bounded.sink.records == Counter((bounded.topic, 0, offset) for offset in range(10))


def _close_as_0_1_0(checkpoint: Path, *, is_committed: bool) -> None:
    """Replaces the closing offset with the one before it, with starts, and `finished: true`."""
    offsets, commits = checkpoint / "offsets", checkpoint / "commits"
    number = max(int(file.name) for file in offsets.glob("[0-9]*"))
    *head, _ = (offsets / str(number)).read_text().splitlines()
    logged = [json.loads((offsets / str(n)).read_text().splitlines()[-1]) for n in range(number)]
    starts = next(offset["starts"] for offset in logged if offset["starts"])
    (offsets / str(number)).write_text(
        "\n".join([*head, json.dumps({**logged[-1], "starts": starts, "finished": True})])
    )
    (offsets / f".{number}.crc").unlink(missing_ok=True)
    if is_committed:
        (commits / str(number)).write_text((commits / "0").read_text())
