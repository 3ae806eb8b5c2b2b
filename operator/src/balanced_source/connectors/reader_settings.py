"""Reads the settings of one connector's readers among all settings of an assignment."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from balanced_source.documents.envelope import MALFORMED
from balanced_source.errors import CorruptDocumentError, in_short
from balanced_source.names import shown

T = TypeVar("T")


def settings_of(
    settings: Mapping[str, Any], kind: str, build: Callable[[Mapping[str, Any]], T]
) -> T | None:
    """Return the settings of a connector as a typed value; None if there are none.

    There are none while a driver has no assignment.

    Args:
        settings: of an assignment: kind of a connector → its settings as JSON.
        kind: of the connector.
        build: makes the typed value of the JSON.

    Raises:
        CorruptDocumentError: they do not have the form that `build` expects.
    """
    if (found := settings.get(kind)) is None:
        return None
    try:
        return build(found)
    except MALFORMED as error:
        raise CorruptDocumentError(
            f"the settings for readers of connector {kind} in the assignment are malformed:"
            f" {_fault(error)}. Use the same release in the images of the operator and of Spark,"
            " and do not edit the assignment"
        ) from error


def needed_settings(
    settings: Mapping[str, Any], kind: str, build: Callable[[Mapping[str, Any]], T]
) -> T:
    """Return the settings of a connector as a typed value.

    Raises:
        CorruptDocumentError: there are none, or they are malformed.
    """
    if (found := settings_of(settings, kind, build)) is None:
        raise CorruptDocumentError(
            f"the assignment has no settings for readers of connector {kind}, which this query"
            " uses. Restart the query if the source was changed to another connector"
        )
    return found


def _fault(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{shown(str(error.args[0]))} is missing"
    return in_short(error)
