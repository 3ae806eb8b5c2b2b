"""Which implementation reads.

The native accelerator where it is installed, else the reference in Python.

Both give the same rows and raise the same errors, and pass the same tests.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Final

import pyarrow as pa

from balanced_source.errors import InvalidSpecError
from balanced_source.host import SplitRange
from balanced_source_adapters.kafka.config import TOKENS
from balanced_source_spark.kafka import native
from balanced_source_spark.kafka.reading_log import ReadingLog
from balanced_source_spark.kafka.settings import RangeReaderSettings
from balanced_source_spark.task_log import tell

_log: Final = ReadingLog()


def read_ranges(
    ranges: Sequence[SplitRange], settings: RangeReaderSettings
) -> Iterator[pa.RecordBatch]:
    """All records of the ranges, by the implementation that the settings name.

    Raises:
        InvalidSpecError: the native reader is insisted on and not installed.
    """
    is_python = TOKENS in settings.config  # only Python can call the function of the user
    read = (
        _python_reader()
        if is_python or not is_native(settings.implementation)
        else native.read_ranges
    )
    return _log.measured(read(ranges, settings), cluster=settings.cluster, reader=settings.reader)


def _python_reader() -> Callable[
    [Sequence[SplitRange], RangeReaderSettings], Iterator[pa.RecordBatch]
]:
    # with it comes a client that the native one needs not
    from balanced_source_spark.kafka import range_reader

    return range_reader.read_ranges


@cache
def is_native(implementation: str) -> bool:
    """Whether the native reader serves in this process; says once if it should but is missing."""
    if implementation == "python":
        return False
    if native.is_available():
        return True
    if implementation == "native":
        raise InvalidSpecError(
            f"the module {native.MODULE} is not installed for this Python: `make native`, or use"
            " the image",
            field="option reader",
        )
    tell(
        "warning",
        "native reader not installed: the Python reader serves, about half as fast",
        module=native.MODULE,
    )
    return False
