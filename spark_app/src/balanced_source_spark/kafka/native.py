"""Reads exact offset ranges by the native accelerator (`spark_app/native`), if it is installed."""

import importlib
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from balanced_source.errors import BalancedSourceError
from balanced_source.host import SplitRange
from balanced_source_spark.kafka.pool import Pool
from balanced_source_spark.kafka.range_reader import OffsetsLostError, RangeReaderSettings, ReadStalledError

MODULE: Final = "balanced_source_native"

MAX_ROWS: Final = 32_768
"""Rows of a record batch; flat from a thousand to fifty thousand."""

MAX_BYTES: Final = 8 << 20
"""Bytes of keys and values after which a record batch is full."""

_pool: Final[Pool[Any]] = Pool()


def is_available() -> bool:
    """Whether the accelerator is installed for this interpreter."""
    return importlib.util.find_spec(MODULE) is not None


def read_ranges(ranges: Sequence[SplitRange], settings: RangeReaderSettings) -> Iterator[pa.RecordBatch]:
    """See `range_reader.read_ranges`."""
    module = importlib.import_module(MODULE)
    wanted = [(str(r.split_id[1]), int(r.split_id[2]), int(r.start or 0), int(r.end or 0)) for r in ranges]
    try:
        with _pool.borrowed(_key(settings), lambda: _open(module, settings)) as reader:
            reader.begin(wanted)
            while (batch := reader.next_batch()) is not None:
                yield pa.record_batch(batch)
    except module.NativeOffsetsLost as error:
        raise OffsetsLostError(str(error)) from None
    except module.NativeReadStalled as error:
        raise ReadStalledError(str(error)) from None
    except module.NativeReadError as error:
        raise BalancedSourceError(str(error)) from None


def counters() -> list[Mapping[str, float]]:
    """What the readers of this process that nobody uses now have counted."""
    return [reader.counters() for reader in _pool.idle()]


def _open(module: Any, settings: RangeReaderSettings) -> Any:
    return module.RangeReader(
        {key: _text(value) for key, value in settings.consumer(queue_per_split=True).items()},
        cluster=settings.cluster,
        columns=list(settings.columns),
        max_rows=MAX_ROWS,
        max_bytes=MAX_BYTES,
        stall=settings.stall,
    )


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _key(settings: RangeReaderSettings) -> tuple[Any, ...]:
    config = tuple(sorted((k, _text(v)) for k, v in settings.consumer(queue_per_split=True).items()))
    return settings.cluster, settings.reader, settings.columns, settings.stall, config
