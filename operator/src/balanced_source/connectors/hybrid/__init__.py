"""A source of several parts that are read in turn (FLIP-150), e.g. files, then Kafka.

Each part is a complete source of another connector. Only one part is read at a time:

    part 0 ──► all splits are read, and committed ──► part 1 ──► … ──► last part (may be unbounded)
                                │
                                └─ what part 0 has measured says where part 1 starts

The enumerator of the present part runs behind a context that adds the name of the part to the ids
of its splits. So readers, assignment, rescaling and recovery know nothing of parts. Of the parts
before, only the name of the present part and the position where it started are remembered.
"""

from balanced_source.connectors.hybrid.enumerator import HybridSplitEnumerator
from balanced_source.connectors.hybrid.settings import KIND, HybridReaderSettings
from balanced_source.connectors.hybrid.source import FEWEST, HybridSource, checked_hybrid
from balanced_source.connectors.hybrid.state import HybridState
from balanced_source.connectors.hybrid.values import (
    HybridPart,
    HybridSplit,
    PartCall,
    names_of,
)

__all__ = [
    "FEWEST",
    "KIND",
    "HybridPart",
    "HybridReaderSettings",
    "HybridSource",
    "HybridSplit",
    "HybridSplitEnumerator",
    "HybridState",
    "PartCall",
    "checked_hybrid",
    "names_of",
]
