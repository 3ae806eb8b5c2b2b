"""Custom events between an enumerator and its readers (FLIP-27 ``SourceEvent``).

They travel inside the documents: numbered, repeated until the other side has acknowledged the number,
handed over once and in order. JSON only, nothing secret.
"""

from dataclasses import dataclass

from balanced_source.api.splits import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEvent:
    """One message; `name` tells the connector how to read `payload`."""

    name: str
    payload: Json = None
