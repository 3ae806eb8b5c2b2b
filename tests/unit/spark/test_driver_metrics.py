"""Metrics of the planning process."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from balanced_source.api import SplitId
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.observation import observe
from balanced_source.host.reader_figures import ReaderFigures
from balanced_source_spark import driver_metrics
from balanced_source_spark.contract.hooks import Figure
from balanced_source_spark.driver_metrics import DriverMetrics

A, B = ("k", "t", 0), ("k", "t", 1)


def test_each_reader_has_its_lag_and_readers_that_are_gone_have_none() -> None:
    metrics = DriverMetrics("orders", namespace="jobs", port=None)
    two = StreamOffset(
        epoch=1, parallelism=2, readers=(0, 1), owners={A: 0, B: 1}, positions={A: 5, B: 5}
    )
    one = StreamOffset(
        epoch=2, parallelism=1, readers=(0,), owners={A: 0, B: 0}, positions={A: 5, B: 5}
    )

    def lag(reader: str) -> float | None:
        return metrics.registry.get_sample_value(
            "balanced_source_host_lag_records",
            {"namespace": "jobs", "source": "orders", "reader": reader},
        )

    metrics.note(observe(two, two, {A: 9, B: 6}), aligned_to=2500)
    assert (lag("0"), lag("1")) == (4, 1)
    assert (
        metrics.registry.get_sample_value(
            "balanced_source_host_aligned_to_seconds", {"namespace": "jobs", "source": "orders"}
        )
        == 2.5
    )
    metrics.note(observe(one, one, {A: 9, B: 6}), aligned_to=None)
    assert (lag("0"), lag("1")) == (5, None)


@pytest.mark.scenario("H11")
def test_the_number_of_pending_records_falls_as_they_are_read() -> None:
    """No number before the first micro-batch, then 9, 8 … 0.

    A second split of the reader adds 9 … 0.
    """
    metrics, told = DriverMetrics("orders", namespace="jobs", port=None), list[float | None]()

    def pending() -> float | None:
        labels = {"namespace": "jobs", "source": "orders", "reader": "0"}
        return metrics.registry.get_sample_value("balanced_source_host_lag_records", labels)

    def read(*splits: SplitId, at: int) -> None:
        owners, positions = (
            dict.fromkeys(splits, 0),
            {s: at if s == splits[-1] else 10 for s in splits},
        )
        offset = StreamOffset(
            epoch=1, parallelism=1, readers=(0,), owners=owners, positions=positions
        )
        metrics.note(observe(offset, offset, dict.fromkeys(splits, 10)), aligned_to=None)
        told.append(pending())

    assert pending() is None
    for number in range(1, 11):
        read(A, at=number)
    for number in range(1, 11):
        read(A, B, at=number)

    assert told == [*range(9, -1, -1)] * 2


def test_an_unknown_lag_has_no_series() -> None:
    """Neither 0 nor the last value that was known: an autoscaler would believe both."""
    metrics = DriverMetrics("orders", namespace="jobs", port=None)
    two = StreamOffset(
        epoch=1, parallelism=2, readers=(0, 1), owners={A: 0, B: 1}, positions={A: 5, B: 5}
    )
    labels = {"namespace": "jobs", "source": "orders"}

    metrics.note(observe(two, two, {A: 9, B: 6}), aligned_to=None)
    metrics.note(observe(two, two, {A: 9}), aligned_to=None)

    lags = [
        metrics.registry.get_sample_value(
            "balanced_source_host_lag_records", {**labels, "reader": r}
        )
        for r in "01"
    ]
    assert lags == [4, None]
    assert metrics.registry.get_sample_value("balanced_source_host_lag_unknown_splits", labels) == 1


def test_each_split_has_its_time_behind_and_splits_that_are_gone_or_unknown_have_none() -> None:
    metrics = DriverMetrics("orders", namespace="jobs", port=None)
    two = StreamOffset(
        epoch=1, parallelism=1, readers=(0,), owners={A: 0, B: 0}, positions={A: 5, B: 5}
    )

    def behind() -> list[float | None]:
        labels = [
            {"namespace": "jobs", "source": "orders", "split": split}
            for split in ("k/t/0", "k/t/1")
        ]
        return [
            metrics.registry.get_sample_value("balanced_source_host_split_behind_seconds", known)
            for known in labels
        ]

    metrics.note(observe(two, two, {}, {A: 1500, B: 0}), aligned_to=None)
    assert behind() == [1.5, 0]
    metrics.note(observe(two, two, {}, {A: None}), aligned_to=None)
    assert behind() == [None, None]


def test_figures_of_a_connector_that_are_not_told_any_more_have_no_series() -> None:
    """Such as those of brokers and clusters that are gone."""
    metrics = DriverMetrics("orders", namespace="jobs", port=None)
    for day in range(3):
        figure = Figure(name="rtt", text="Round trip.", value=1.0, labels={"cluster": f"day-{day}"})
        metrics.note_figures([figure])

    (family,) = (f for f in metrics.registry.collect() if f.name == "balanced_source_host_rtt")
    assert [sample.labels["cluster"] for sample in family.samples] == ["day-2"]


def test_each_reader_has_the_figures_of_its_tasks_and_none_when_it_is_gone() -> None:
    metrics = DriverMetrics("orders", namespace="jobs", port=None)
    names = ("records_read", "bytes_read", "source_busy_seconds", "downstream_busy_seconds")

    def work(reader: str, *names: str) -> list[float | None]:
        labels = {"namespace": "jobs", "source": "orders", "reader": reader}
        return [
            metrics.registry.get_sample_value(f"balanced_source_host_reader_{name}", labels)
            for name in names
        ]

    first = ReaderFigures(records=4, size=80, source=1.5, downstream=0.5, first=0.25)
    metrics.note_readers({0: first, 1: ReaderFigures(records=7)})
    assert work("0", *names, "first_records_seconds") == [4, 80, 1.5, 0.5, 0.25]
    assert work("1", *names, "first_records_seconds") == [7, 0, 0, 0, None], "no task delivered"

    metrics.note_readers({0: first})
    assert work("1", *names) == [None] * 4


def test_metrics_are_served_where_a_port_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[tuple[int, Any]] = []

    def serve(port: int, *, registry: Any) -> None:
        served.append((port, registry))

    monkeypatch.setattr(driver_metrics, "start_http_server", serve)

    DriverMetrics("orders", port=None)
    metrics = DriverMetrics("orders", port=8090)

    assert served == [(8090, metrics.registry)]


def test_a_port_that_is_in_use_does_not_end_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another query of this driver has it."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("in use")

    monkeypatch.setattr(driver_metrics, "start_http_server", refuse)

    with capture_logs() as lines:
        DriverMetrics("orders", port=8090)

    (line,) = lines
    assert (line["event"], line["port"], line["error"]) == (
        "metrics are not served",
        8090,
        "in use",
    )
