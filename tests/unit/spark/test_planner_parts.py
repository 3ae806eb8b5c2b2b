"""What the parts of a planner are made of, and what is passed between them."""

from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.api import SourceEvent
from balanced_source.host.reader_figures import ReaderFigures
from balanced_source_spark import driver_metrics, planner_parts
from balanced_source_spark.options import AlignmentOptions
from balanced_source_spark.planner_figures import PlannerFigures
from balanced_source_spark.planner_parts import PlannerParts
from support.planned_query import PlannedQuery
from support.world import Broker, kafka_source


def parts_of(**parts: Any) -> Any:
    """Return parts of which only these are there."""
    made: Any = PlannerParts()
    for name, part in parts.items():
        setattr(made, f"_{name}", part)
    return made


@pytest.mark.parametrize(
    ("source", "labels"), [("orders", ("orders", "shop")), (None, ("embedded", ""))]
)
def test_metrics_name_the_source_that_there_is(
    source: str | None, labels: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The namespace of a query without a source is only the option's default."""

    def metrics(source: str, *, namespace: str, port: int) -> Any:
        return source, namespace, port

    monkeypatch.setattr(driver_metrics, "DriverMetrics", metrics)
    options = SimpleNamespace(source=source, namespace="shop", metrics_port=8090)

    assert parts_of(options=options)._metrics == (*labels, 8090)


def test_an_alignment_group_is_heard_of_in_the_newest_assignment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planner_parts, "GroupAlignment", lambda name, **of: (name, of))
    asked = AlignmentOptions(max_drift=500, idle_timeout=9.0, group="orders")
    runtime = SimpleNamespace(newest_assignment=lambda *, timeout: ("newest", timeout))

    name, of = parts_of(options=SimpleNamespace(alignment=asked), runtime=runtime)._group

    assert (name, of["max_drift"], of["idle_timeout"]) == ("orders", 500, 9.0)
    assert of["newest"]() == ("newest", 0.0)


@pytest.mark.parametrize("alignment", [None, AlignmentOptions(max_drift=500)])
def test_a_source_without_a_group_is_alone(alignment: AlignmentOptions | None) -> None:
    assert parts_of(options=SimpleNamespace(alignment=alignment))._group is None


@pytest.mark.parametrize("is_sent", [True, False])
def test_hooks_hear_whether_an_event_is_sent(*, is_sent: bool) -> None:
    runtime = SimpleNamespace(send_event=lambda *_: is_sent)

    assert parts_of(runtime=runtime)._send_event(0, SourceEvent(name="hello")) is is_sent


def test_no_one_is_asked_before_the_first_assignment() -> None:
    """No one knows where the servers are."""
    parts = parts_of(
        runtime=SimpleNamespace(newest_assignment=lambda **_: None),
        hooks=SimpleNamespace(
            ends=lambda *_: pytest.fail("asked"), event_times=lambda *_: pytest.fail("asked")
        ),
    )

    assert parts._ask_ends("main", [("main", "orders", 0)]) == {}
    assert parts._ask_times("main", {("main", "orders", 0): 5}) == {}


class Metrics:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}

    def note(self, seen: Any, *, aligned_to: int | None) -> None:
        self.told |= {"seen": seen, "aligned to": aligned_to}

    def note_readers(self, figures: Any) -> None:
        self.told["readers"] = figures

    def note_figures(self, figures: Any) -> None:
        self.told["figures"] = figures


def test_metrics_hear_of_each_micro_batch() -> None:
    broker = Broker()
    broker.create("c", "t", [0], end=7)
    query, metrics = PlannedQuery(source=kafka_source("c"), broker=broker), Metrics()
    planner: Any = query.planner
    planner._metrics = metrics
    query.hooks.figures = lambda: "those of the connector"
    read = {0: ReaderFigures(records=7)}
    planner._figures = lambda _: read

    query.trigger_until(lambda: query.records.total() == 7, "all to be read")
    query.close()

    assert metrics.told["readers"] == read
    assert metrics.told["figures"] == "those of the connector"
    assert metrics.told["seen"].epoch == query.last.epoch
    assert metrics.told["aligned to"] is None


@pytest.mark.parametrize("skipped", [[], ["a range"]])
def test_what_tasks_have_skipped_is_told_even_if_nothing_else_is(skipped: list[str]) -> None:
    told: list[Any] = []
    figures: Any = PlannerFigures()
    figures._hooks = SimpleNamespace(note_skipped=told.append)
    figures._is_shown_idle = True
    figures._note_skipped()
    assert (told, figures._is_shown_idle) == ([], True), "no task has been planned"

    figures._samples = SimpleNamespace(skipped=lambda: skipped)
    figures._note_skipped()

    assert told == ([skipped] if skipped else [])
    assert figures._is_shown_idle is not bool(skipped), "the query may end before anything else"
