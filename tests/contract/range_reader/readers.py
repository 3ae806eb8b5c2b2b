"""Every implementation of a range reader.

A new one gets a line here and must pass the whole suite.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa

from balanced_source.host import SplitRange
from balanced_source_spark.kafka import native, range_reader
from balanced_source_spark.kafka.settings import RangeReaderSettings

ReadRanges = Callable[[Sequence[SplitRange], RangeReaderSettings], Iterator[pa.RecordBatch]]

READERS: Final[Mapping[str, ReadRanges]] = {
    "python": range_reader.read_ranges,
    "native": native.read_ranges,
}


def is_there(name: str) -> bool:
    """Whether a reader is installed; the native one is built by ``make native``."""
    return name != "native" or native.is_available()
