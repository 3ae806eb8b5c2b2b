"""Stream offsets as Spark passes them, with a memory of the newest ones.

Spark passes each offset to the planning process three times as JSON, and the process wrote most of
them itself. Decoding 10,000 splits costs far more than a look whether two JSON values are equal.
What is remembered is what decoding would give, so planning depends on its arguments alone.
"""

from collections.abc import Mapping
from typing import Any, Final

from balanced_source.api import Json, SplitId
from balanced_source.documents import columns, stream_offset
from balanced_source.documents.stream_offset import StreamOffset

REMEMBERED: Final = 3
"""Offsets: start and end of the newest micro-batch, and the end of the next one."""


class OffsetCodec:
    """Encodes and decodes the stream offsets of one query.

    Used by one thread. Tables of an offset must not change once it was encoded.
    """

    def __init__(self) -> None:
        self._known: list[tuple[Mapping[str, Any], StreamOffset]] = []
        self._tables: list[tuple[Mapping[SplitId, Any], list[Json]]] = []
        # Positions change all the time, and their splits hardly ever.
        self._rows = columns.TableEncoder()

    def decode(self, data: Mapping[str, Any]) -> StreamOffset:
        """See `stream_offset.from_json`; equal values give the same object while remembered."""
        for known, offset in self._known:
            if known == data:
                return offset
        found = stream_offset.from_json(data)
        self._remember(data, found)
        return found

    def encode(self, offset: StreamOffset) -> dict[str, Json]:
        """See `stream_offset.to_json`; tables that the former offset had too are not encoded again.

        Owners, starts and attributes change with epochs only.
        """
        used: list[tuple[Mapping[SplitId, Any], list[Json]]] = []

        def rows(table: Mapping[SplitId, Any]) -> list[Json]:
            # By identity: to compare two tables would cost as much as to encode one.
            found = next((rows for known, rows in self._tables if known is table), None)
            used.append((table, self._rows(table) if found is None else found))
            return used[-1][1]

        data = stream_offset.to_json(offset, encode_map=rows)
        self._tables = used
        self._remember(data, offset)
        return data

    def _remember(self, data: Mapping[str, Any], offset: StreamOffset) -> None:
        # A copy, because the caller may change what it was given.
        self._known = [(dict(data), offset), *self._known[: REMEMBERED - 1]]
