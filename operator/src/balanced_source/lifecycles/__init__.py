"""The protocol's life cycles as tables: the code asks them what may happen, the documentation is drawn from them."""

from typing import Any, Final

from balanced_source.lifecycles.host import HOST, HostEvent, HostPhase
from balanced_source.lifecycles.reader import READER, ReaderEvent, ReaderPhase
from balanced_source.lifecycles.source import SOURCE, SourceEvent, SourcePhase
from balanced_source.lifecycles.split import SPLIT, SplitEvent, SplitPhase
from balanced_source.lifecycles.table import Lifecycle, Row

LIFECYCLES: Final[tuple[Lifecycle[Any, Any], ...]] = (SPLIT, READER, HOST, SOURCE)
"""All of them."""

__all__ = [
    "HOST",
    "LIFECYCLES",
    "READER",
    "SOURCE",
    "SPLIT",
    "HostEvent",
    "HostPhase",
    "Lifecycle",
    "ReaderEvent",
    "ReaderPhase",
    "Row",
    "SourceEvent",
    "SourcePhase",
    "SplitEvent",
    "SplitPhase",
]
