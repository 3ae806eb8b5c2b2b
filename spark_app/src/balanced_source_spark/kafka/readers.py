"""Which implementation reads: the native accelerator where it is installed, else the reference in Python.

Both give the same rows and raise the same errors, and pass the same tests.
"""

import os
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, Protocol

import pyarrow as pa
import structlog

from balanced_source.host import SplitRange
from balanced_source_spark.kafka import native, range_reader
from balanced_source_spark.kafka.range_reader import RangeReaderSettings

SWITCH: Final = "BALANCED_SOURCE_NATIVE"
"""Environment variable of executors: `0` keeps to the Python reader, `1` insists on the native one."""

log = structlog.get_logger(__name__)


class ReadRanges(Protocol):
    """See `range_reader.read_ranges`."""

    def __call__(
        self, ranges: Sequence[SplitRange], settings: RangeReaderSettings
    ) -> Iterator[pa.RecordBatch]: ...  # pragma: no cover


def read_ranges(ranges: Sequence[SplitRange], settings: RangeReaderSettings) -> Iterator[pa.RecordBatch]:
    """All records of the ranges, by the best reader that there is."""
    return chosen()(ranges, settings)


@cache
def chosen() -> ReadRanges:
    """The implementation of this process; says once if it is the slower one."""
    wish = os.environ.get(SWITCH, "")
    if wish == "0":
        return range_reader.read_ranges
    if native.is_available():
        return native.read_ranges
    if wish == "1":
        raise ModuleNotFoundError(f"{SWITCH}=1, but the module {native.MODULE} is not installed: `make native`")
    log.warning("native reader not installed: the Python reader serves, about half as fast", module=native.MODULE)
    return range_reader.read_ranges
