"""Decodes each stream offset once: Spark passes the same one three times per micro-batch."""

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from balanced_source.documents import stream_offset
from balanced_source.documents.stream_offset import StreamOffset

KEPT: Final = 3
"""Offsets that are kept: the two of a micro-batch, and the end of the one before."""


class RecentOffsets:
    """Offsets that were decoded lately.

    To compare two JSON values takes a hundredth of what decoding one takes.
    """

    def __init__(self) -> None:
        self._kept: deque[tuple[Mapping[str, Any], StreamOffset]] = deque(maxlen=KEPT)

    def decoded(self, data: Mapping[str, Any]) -> StreamOffset:
        """Returns the offset in a JSON value, which nobody may change afterwards.

        Raises:
            IncompatibleVersionError: see `stream_offset.from_json`.
            CorruptDocumentError: the same.
        """
        for kept, offset in self._kept:
            if kept == data:
                return offset
        offset = stream_offset.from_json(data)
        self._kept.appendleft((data, offset))
        return offset
