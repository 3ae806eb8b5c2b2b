"""The protocol's life cycles as tables.

The code asks them what may happen, the documentation is drawn from them.
"""

from typing import Any, Final

from balanced_source.lifecycles.host import HOST, HostEvent, HostPhase
from balanced_source.lifecycles.incarnation import INCARNATION, IncarnationEvent, IncarnationPhase
from balanced_source.lifecycles.source import SOURCE, SourcePhase, SourceTransition
from balanced_source.lifecycles.split import SPLIT, SplitEvent, SplitPhase
from balanced_source.lifecycles.table import Lifecycle, Row

LIFECYCLES: Final[tuple[Lifecycle[Any, Any], ...]] = (SPLIT, INCARNATION, HOST, SOURCE)
"""All of them."""

__all__ = [
    "HOST",
    "INCARNATION",
    "LIFECYCLES",
    "SOURCE",
    "SPLIT",
    "HostEvent",
    "HostPhase",
    "IncarnationEvent",
    "IncarnationPhase",
    "Lifecycle",
    "Row",
    "SourcePhase",
    "SourceTransition",
    "SplitEvent",
    "SplitPhase",
]
