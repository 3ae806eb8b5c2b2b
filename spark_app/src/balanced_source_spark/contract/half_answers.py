"""Checks what a Spark half returns, before a query works with it.

Spark would fail later, with a traceback that names no connector. All processes of a query import
this, so it imports little.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, cast

from balanced_source.api import Source
from balanced_source_adapters.mistakes import expect, expect_texts, explained
from balanced_source_spark.contract.ddl import check_ddl, check_names
from balanced_source_spark.contract.half import AnyHalf
from balanced_source_spark.contract.option_table import Option
from balanced_source_spark.contract.secrets import QuerySecrets


def asked(connector: str, half: AnyHalf[Any], method: str, *arguments: Any) -> Any:
    """Return what a method of a half returns.

    Args:
        connector: its kind.
        half: of the connector.
        method: of the half.
        *arguments: of the method.

    Raises:
        ConnectorError: the method fails, or returns another type. Names connector and method.
    """
    with explained(connector, method):
        found = getattr(half, method)(*arguments)
        if (check := _CHECKS.get(method)) is not None:
            check(found)
        if method == "source" and found.kind != connector:
            raise ValueError(f"it returned a Source of kind {found.kind!r}, not {connector!r}")
        return found


def _check_options(found: object) -> None:
    if found is None:
        return
    expect(found, Sequence, "a tuple of Option, or None,")
    for option in cast("Sequence[object]", found):
        expect(option, Option, "an Option", "returned a tuple with")


def _check_notes(found: object) -> None:
    expect_texts(found, "a tuple of texts")


def _check_secrets(found: object) -> None:
    expect(found, QuerySecrets, "a QuerySecrets")


def _check_source(found: object) -> None:
    expect(found, Source, "a Source")


def _check_schema(found: object) -> None:
    if isinstance(found, str):
        check_ddl(found)
        return
    from pyspark.sql.types import StructType

    expected = "a StructType, or a text such as 'number BIGINT, text STRING',"
    expect(found, StructType, expected)
    check_names(cast("StructType", found).names)


def _check_task_reader(found: object) -> None:
    if not callable(found):
        raise TypeError(
            f"it returned a {type(found).__name__}, and a function that makes the reader of a task"
            " was expected"
        )


_CHECKS: Final[Mapping[str, Callable[[object], None]]] = MappingProxyType(
    {
        "options": _check_options,
        "notes": _check_notes,
        "secrets": _check_secrets,
        "source": _check_source,
        "schema": _check_schema,
        "task_reader": _check_task_reader,
    }
)
"""Methods of a half → what checks the result. `hooks` is checked in `checked_hooks`."""
