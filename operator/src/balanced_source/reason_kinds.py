"""What a reason is made of."""

import enum
import re
from collections.abc import Iterator
from typing import Final, Self

_WORD: Final = re.compile("[A-Z][A-Za-z0-9]{0,127}")
"""A CamelCase word that fits into an event of Kubernetes."""


class ReasonKind(enum.Enum):
    """What a reason is about. The value is the heading on the page of reasons."""

    OPERATION = "Problems of the operator and the application"
    SOURCE = "Problems of the source"
    LOSS = "Records that are gone"
    STATE = "States"
    AUTOSCALING = "Decisions of the autoscaler"
    EVENT = "Events"


class ExplainedReason(enum.StrEnum):
    """A word for conditions, events and log lines that explains itself.

    A connector derives an enum for words of its own. `make generate` puts those of built-in
    connectors on the page of reasons. A problem of kind LOSS becomes the condition DataLoss.

    Attributes:
        kind: what it is about.
        cause, remedy: what happened and what to do, as sentences; the remedy is empty where there
            is nothing to do.
    """

    _value_: str
    kind: ReasonKind
    cause: str
    remedy: str

    def __new__(cls, word: str, kind: ReasonKind, cause: str, remedy: str = "") -> Self:
        """Make a member: the word, and what the page says of it."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.kind, member.cause, member.remedy = kind, cause, remedy
        return member


def loaded_reasons() -> Iterator[ExplainedReason]:
    """Yield the reasons of this project and of all connectors whose modules are loaded."""
    for words in ExplainedReason.__subclasses__():
        yield from words


def reason_fault(reason: object) -> str:
    """Return what is wrong with a reason that a connector gives; empty if nothing is."""
    if isinstance(reason, str) and _WORD.fullmatch(reason):
        return ""
    return (
        f"its reason {str(reason)[:128]!r} is not a CamelCase word of letters and digits, at most"
        " 128, such as NoFolder"
    )
