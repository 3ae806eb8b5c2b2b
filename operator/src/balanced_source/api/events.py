"""Custom events between an enumerator and its readers (FLIP-27 ``SourceEvent``).

They travel inside the documents: numbered, repeated until the other side has acknowledged the number,
handed over once and in order. JSON only, nothing secret. An event belongs to the incarnation of the reader that it was
sent to, or that sent it: a reader that registers again gets and sends none of the old ones, and the enumerator, which
sees it by `SplitEnumerator.add_reader`, says again what it must know.
"""

from dataclasses import dataclass
from typing import Final

from balanced_source.api.splits import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEvent:
    """One message; `name` tells the connector how to read `payload`. Names that begin with ``$`` are ours."""

    name: str
    payload: Json = None


SPLIT_REQUEST: Final = SourceEvent(name="$splitRequest")
"""How a reader asks for work; the coordinator turns it into `SplitEnumerator.handle_split_request`."""
