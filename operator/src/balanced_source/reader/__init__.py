"""Building blocks of readers (FLIP-27 ``connector-base``), pure.

Threads are in `balanced_source_adapters.fetchers`.
"""

from balanced_source.reader.base import SourceReaderBase
from balanced_source.reader.fetching import (
    Fetched,
    Fetchers,
    FetcherSet,
    SplitFetcher,
    Threading,
)
from balanced_source.reader.keeping import kept
from balanced_source.reader.outputs import SplitOutputs
from balanced_source.reader.records import RecordsBySplits
from balanced_source.reader.watermarks import CombinedWatermark

__all__ = [
    "CombinedWatermark",
    "Fetched",
    "FetcherSet",
    "Fetchers",
    "RecordsBySplits",
    "SourceReaderBase",
    "SplitFetcher",
    "SplitOutputs",
    "Threading",
    "kept",
]
