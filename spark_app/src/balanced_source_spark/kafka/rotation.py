"""Reads through the rotation of a Secret.

A broker may know the new password for a minute before the kubelet has renewed the file: a client
that connects in between is refused. A task that failed then would end the query after a few
attempts within a second.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pyarrow as pa

from balanced_source.errors import RefusedDiscoveryError, TransientDiscoveryError
from balanced_source.host import SplitRange
from balanced_source_spark.kafka.settings import STALL, RangeReaderSettings, ReadRefusedError
from balanced_source_spark.task_log import tell

INTERVAL: Final = 1.0
"""Seconds between two attempts."""

Read = Callable[[Sequence[SplitRange], RangeReaderSettings], Iterator[pa.RecordBatch]]


def read_with_newest(
    ranges: Sequence[SplitRange],
    settings: Callable[[], RangeReaderSettings],
    read: Read,
    *,
    patience: float = STALL,
    interval: float = INTERVAL,
    stall: float = STALL,
) -> Iterator[pa.RecordBatch]:
    """All records of the ranges.

    Begun again with newer settings while the broker refuses the first ones.

    Args:
        ranges: see `range_reader.read_ranges`.
        settings: made for each attempt, from what Secrets hold then.
        read: an implementation.
        patience: seconds after which a refusal counts; 0 if nothing can change.
        interval: seconds between two attempts.
        stall: seconds to wait for a leader that does not say where its partition begins: without
            that, what the partition holds would pass for deleted.

    Raises:
        ReadRefusedError: the broker still refuses, or does so after records have come.
        RefusedDiscoveryError: it still refuses to say what there is.
        TransientDiscoveryError: a leader still does not answer.
    """
    began = time.monotonic()
    while True:
        batches = read(ranges, settings())
        try:
            first = next(batches, None)
        except (ReadRefusedError, RefusedDiscoveryError, TransientDiscoveryError) as error:
            is_passing = isinstance(error, TransientDiscoveryError)
            if time.monotonic() >= began + (stall if is_passing else patience):
                raise
            what = (
                "no answer; trying again"
                if is_passing
                else "refused; trying again with what the Secret says then"
            )
            tell("warning", what, error=str(error))
            time.sleep(interval)
            continue
        if first is not None:
            yield first
            yield from batches
        return
