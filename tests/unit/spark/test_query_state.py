"""Further hosts refuse a query that keeps state, by its logical plan."""

from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.errors import InvalidSpecError
from balanced_source_spark.query_state import check_stateless, stateful_operation

pytestmark = pytest.mark.unit


class Children(list[Any]):
    """A sequence of the JVM."""

    def size(self) -> int:
        return len(self)

    def apply(self, number: int) -> Any:
        return self[number]


def node(name: str, *children: Any, is_streaming: bool | None = None) -> Any:
    inherited = any(child.isStreaming() for child in children)
    streams = inherited if is_streaming is None else is_streaming
    return SimpleNamespace(
        nodeName=lambda: name, isStreaming=lambda: streams, children=lambda: Children(children)
    )


def rows(plan: Any) -> Any:
    execution = SimpleNamespace(analyzed=lambda: plan)
    return SimpleNamespace(_jdf=SimpleNamespace(queryExecution=lambda: execution))


def stream() -> Any:
    return node("StreamingRelationV2", is_streaming=True)


def table() -> Any:
    return node("LogicalRelation", is_streaming=False)


@pytest.mark.parametrize(
    ("plan", "operation"),
    [
        (node("Project", node("Filter", stream())), None),
        (node("Aggregate", stream()), "Aggregate"),
        (node("Project", node("Deduplicate", node("EventTimeWatermark", stream()))), "Deduplicate"),
        (node("TransformWithStateInPySpark", stream(), table()), "TransformWithStateInPySpark"),
        (node("Join", stream(), stream()), "Join"),
        (node("Join", stream(), node("Aggregate", table())), None),
    ],
)
def test_an_operation_keeps_state_if_its_input_is_a_stream(
    plan: Any, operation: str | None
) -> None:
    assert stateful_operation(rows(plan)) == operation


def test_a_further_host_refuses_a_query_that_keeps_state() -> None:
    check_stateless(rows(node("Project", stream())), "1")

    with pytest.raises(InvalidSpecError, match=r"keeps state \(Aggregate\), so host 1 cannot read"):
        check_stateless(rows(node("Aggregate", stream())), "1")
