"""Custom events between an enumerator and its readers (FLIP-27 ``SourceEvent``).

They travel inside the documents: numbered, repeated until the other side has acknowledged the
number, handed over once and in order. JSON only, nothing secret. An event belongs to the
incarnation of the reader that it was sent to, or that sent it: a reader that registers again gets
and sends none of the old ones, and the enumerator, which sees it by `SplitEnumerator.add_reader`,
says again what it must know.
"""

from dataclasses import dataclass
from typing import Final

from balanced_source.api.json_values import JSON, json_fault
from balanced_source.api.splits import Json
from balanced_source.errors import ContractViolationError
from balanced_source.names import is_unicode


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEvent:
    """One message; `name` tells the connector how to read `payload`.

    Names that begin with ``$`` are ours.
    """

    name: str
    payload: Json = None

    def __post_init__(self) -> None:
        """Refuse what no document can hold, where it is made.

        Later no one could tell whose event it is.

        Raises:
            ContractViolationError: the payload is not JSON.
        """
        if why := json_fault(self.payload):
            raise ContractViolationError(
                f"the payload of event {self.name!r} is not JSON: {why}. Use {JSON}"
            )
        if not is_unicode(self.name):
            raise ContractViolationError(f"the name of event {self.name!r} is not Unicode")


SPLIT_REQUEST: Final = SourceEvent(name="$splitRequest")
"""How a reader asks for work; the coordinator turns it into `SplitEnumerator.handle_split_request`.
"""
