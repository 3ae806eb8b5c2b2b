"""Whether a query keeps state, which a split that moves to another host would leave behind."""

from collections.abc import Iterator
from typing import Any, Final

from balanced_source.errors import InvalidSpecError

_KEEP_STATE: Final = frozenset(
    {
        "Aggregate",
        "Deduplicate",
        "DeduplicateWithinWatermark",
        "Distinct",
        "FlatMapGroupsInPandasWithState",
        "FlatMapGroupsWithState",
        "GlobalLimit",
        "SessionWindow",
        "TransformWithState",
        "TransformWithStateInPandas",
        "TransformWithStateInPySpark",
    }
)
"""Nodes of a logical plan that keep state when their input is a stream."""

_JOIN: Final = "Join"


def check_stateless(rows: Any, host: str) -> None:
    """Check that a further host of a source keeps no state.

    Args:
        rows: DataFrame of the query.
        host: name of the host.

    Raises:
        InvalidSpecError: it does. Names the operation.
    """
    operation = stateful_operation(rows)
    if operation is not None:
        raise InvalidSpecError(
            f"the query keeps state ({operation}), so host {host} cannot read splits of another"
            " host: their state would stay behind. Set count to 1, or remove the operation",
            field="spec.application.hosts",
        )


def stateful_operation(rows: Any) -> str | None:
    """Return the name of the first operation of a streaming query that keeps state, if any."""
    return next(filter(None, map(_kept_by, _nodes(rows._jdf.queryExecution().analyzed()))), None)


def _kept_by(node: Any) -> str | None:
    name = str(node.nodeName())
    # A join keeps state for two streams only. Static tables may be aggregated and joined.
    if name == _JOIN:
        return name if all(child.isStreaming() for child in _children(node)) else None
    return name if name in _KEEP_STATE and node.isStreaming() else None


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in _children(node):
        yield from _nodes(child)


def _children(node: Any) -> list[Any]:
    found = node.children()
    return [found.apply(number) for number in range(found.size())]
