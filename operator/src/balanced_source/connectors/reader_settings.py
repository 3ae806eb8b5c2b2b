"""What readers of a connector must know besides their splits: one typed value, JSON on the way."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from balanced_source.documents.envelope import MALFORMED
from balanced_source.errors import CorruptDocumentError, in_short
from balanced_source.names import shown


class ReaderSettings(ABC):
    """Settings of one connector's readers, among all settings of an assignment.

    Attributes:
        kind: of the connector: their key in an assignment.
    """

    __slots__ = ()

    kind: ClassVar[str]

    @classmethod
    @abstractmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the settings of the JSON value; one that does not fit may raise `MALFORMED`."""
        ...

    @classmethod
    def found(cls, settings: Mapping[str, Any]) -> Self | None:
        """Return the settings among all of an assignment; None if there are none.

        There are none while a driver has no assignment.

        Raises:
            CorruptDocumentError: they are malformed.
        """
        if (found := settings.get(cls.kind)) is None:
            return None
        try:
            return cls.from_json(found)
        except MALFORMED as error:
            raise CorruptDocumentError(
                f"the settings for readers of connector {cls.kind} in the assignment are malformed:"
                f" {_fault(error)}. Use the same release in the images of the operator and of"
                " Spark, and do not edit the assignment"
            ) from error

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Return the settings among all of an assignment.

        Raises:
            CorruptDocumentError: there are none, or they are malformed.
        """
        if (found := cls.found(settings)) is None:
            raise CorruptDocumentError(
                f"the assignment has no settings for readers of connector {cls.kind}, which this"
                " query uses. Restart the query if the source was changed to another connector"
            )
        return found


def _fault(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{shown(str(error.args[0]))} is missing"
    return in_short(error)
