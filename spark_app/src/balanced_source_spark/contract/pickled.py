"""Checks, when a query is planned, that tasks can get what its connector brings.

Spark would say it too, later, with a traceback that names no connector.
"""

from collections.abc import Callable, Iterator
from typing import Any

from pyspark import cloudpickle

from balanced_source.errors import ContractViolationError, in_short
from balanced_source_spark.contract.half import AnyHalf, Query
from balanced_source_spark.contract.mistakes import attributed


def check_pickles(
    connector: str, half: AnyHalf[Any], query: Query[Any], made: Callable[[], Any]
) -> None:
    """Check that what tasks get can be pickled.

    Args:
        connector: its kind.
        half: of the connector.
        query: see `Query`.
        made: makes the reader of a task.

    Raises:
        ConnectorContractError: it cannot. Names the connector, and what it is.
    """
    if (why := _fault(made)) is None:
        return
    what, why = next(_faults(half, query), ("what task_reader returned", why))
    with attributed(connector):
        raise ContractViolationError(
            f"{what} cannot be pickled for tasks: {why}. Leave clients, locks and open files to the"
            " task, which makes them when it reads"
        )


def _faults(half: AnyHalf[Any], query: Query[Any]) -> Iterator[tuple[str, str]]:
    """Yield the parts that cannot be pickled, and why."""
    parts = {
        "what read_options returned": query.read,
        "its Spark half": half,
        "what secrets returned": query.secrets,
    }
    for what, part in parts.items():
        if (why := _fault(part)) is not None:
            yield what, why


def _fault(value: object) -> str | None:
    try:
        cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    except Exception as error:  # noqa: BLE001 - whatever the objects of a connector raise
        return in_short(error)
    return None
