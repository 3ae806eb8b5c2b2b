"""What the executor's log says of a reader."""

from collections.abc import Generator
from typing import Any

import pyarrow as pa

from balanced_source_spark.kafka.reading_log import ReadingLog
from balanced_source_spark.task_log import TELL_EVERY


class Scene:
    """A broker that takes its time, and a log."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.lines: list[dict[str, Any]] = []
        self.is_closed = False
        self.log = ReadingLog(lambda _, __, **figures: self.lines.append(figures), lambda: self.now)

    def batches(self, *delays: float) -> Generator[pa.RecordBatch, None, None]:
        try:
            for delay in delays:
                self.now += delay
                yield pa.record_batch({"offset": pa.array([1, 2], pa.int64())})
        finally:
            self.is_closed = True

    def read(self, *delays: float) -> int:
        return sum(
            b.num_rows for b in self.log.measured(self.batches(*delays), cluster="main", reader=3)
        )


def test_one_line_a_minute_has_what_came_since_the_one_before() -> None:
    scene = Scene()

    assert scene.read(0.5, 0.25) == 4
    assert scene.lines == []
    scene.now += TELL_EVERY
    scene.read(0.125)
    scene.read(4.0)
    scene.now += TELL_EVERY
    scene.read(2.0, 1.0)

    first, second = scene.lines
    figures = {"cluster": "main", "reader": 3, "micro_batches": 2, "rows": 6, "bytes": 48}
    assert first == {**figures, "waited": 0.875, "first_rows": 0.5}
    assert (second["micro_batches"], second["rows"], second["waited"], second["first_rows"]) == (
        2,
        6,
        7.0,
        4.0,
    )


def test_processing_time_of_the_task_is_not_waiting_time() -> None:
    scene = Scene()

    for _ in scene.log.measured(scene.batches(0.5, 0.5), cluster="main", reader=3):
        scene.now += TELL_EVERY

    assert scene.lines[0]["waited"] == 1.0


def test_a_task_that_is_given_up_closes_its_reader() -> None:
    scene = Scene()
    reading = scene.log.measured(scene.batches(0.5, 0.5), cluster="main", reader=3)
    next(iter(reading))

    reading.close()  # type: ignore[attr-defined] # a generator

    assert scene.is_closed
    assert scene.lines == []
