"""Reads exact offset ranges by the native accelerator (`spark_app/native`), if it is installed."""

import importlib
import importlib.util
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from balanced_source.connectors.kafka import KafkaSplitId
from balanced_source.connectors.kafka.titles import titled
from balanced_source.host import SplitRange
from balanced_source_adapters.kafka.config import without_secrets
from balanced_source_spark.kafka.pool import Pool
from balanced_source_spark.kafka.renewals import renewals_of
from balanced_source_spark.kafka.settings import (
    LogRewrittenError,
    OffsetsLostError,
    RangeReaderSettings,
    ReadRefusedError,
    ReadStalledError,
)
from balanced_source_spark.task_log import TELL_EVERY, tell

MODULE: Final = "balanced_source_native"

MAX_ROWS: Final = 32_768
"""Rows of a record batch; flat from a thousand to fifty thousand."""

MAX_BYTES: Final = 8 << 20
"""Bytes of keys and values after which a record batch is full."""

FORGET_AFTER: Final = 60.0
"""Seconds after which a partition that the reader does not read any more is not fetched any more:
it has another reader now, or it is idle, and then fetching it again costs a few milliseconds when a
record arrives."""

_pool: Final[Pool[Any]] = Pool(hand_on=lambda reader: reader.forget_idle(0.0))
_logged: Final[dict[int, float]] = {}


def is_available() -> bool:
    """Whether the accelerator is installed for this interpreter."""
    return importlib.util.find_spec(MODULE) is not None


def read_ranges(
    ranges: Sequence[SplitRange], settings: RangeReaderSettings
) -> Iterator[pa.RecordBatch]:
    """See `range_reader.read_ranges`."""
    module = importlib.import_module(MODULE)
    wanted = [
        (*KafkaSplitId.of(r.split_id)[1:], int(r.start or 0), int(r.end or 0), r.term)
        for r in ranges
    ]
    try:
        key = (*_key(settings), renewals_of(settings.cluster, ranges))
        with _pool.borrowed(
            key,
            lambda: _open(module, settings),
            owner=settings.reader,
            begin=lambda reader: reader.begin(wanted),
        ) as reader:
            # The reader blocks outside of Python: only to close it ends the wait.
            with settings.interrupt.calls(reader.close):
                while (batch := reader.next_batch()) is not None:
                    yield pa.record_batch(batch)
            reader.forget_idle(FORGET_AFTER)
            _tell(settings, reader)
    except module.NativeLogRewritten as error:
        text, topic, partition, offset = error.args
        text = _worded(text, settings)
        raise LogRewrittenError(text, cuts={(topic, partition): offset}) from None
    except module.NativeOffsetsLost as error:
        raise OffsetsLostError(_worded(str(error), settings)) from None
    except module.NativeReadStalled as error:
        raise ReadStalledError(_worded(str(error), settings)) from None
    except module.NativeReadError as error:
        # The interrupt closes the reader, which then fails with an error that says nothing.
        if settings.interrupt.is_set:
            raise ReadStalledError(f"{settings.where}: the read was interrupted") from None
        text = without_secrets(str(error), settings.config)
        raise ReadRefusedError(_worded(text, settings)) from None


def _worded(text: str, settings: RangeReaderSettings) -> str:
    """Return an error of the native reader, which begins with the cluster's name, with its title.

    The compiled module knows the name alone, which it writes into the rows.
    """
    named = titled(settings.cluster)
    return f"{settings.where}{text.removeprefix(named)}" if text.startswith(named) else text


def _tell(settings: RangeReaderSettings, reader: Any) -> None:
    """One line per consumer and minute in the executor's log: since its consumer was made.

    None in its first minute.
    """
    now = time.monotonic()
    if now - _logged.setdefault(settings.reader, now) >= TELL_EVERY:
        _logged[settings.reader] = now
        figures = {name: round(number, 3) for name, number in reader.counters().items()}
        tell("info", "native consumer", cluster=settings.cluster, reader=settings.reader, **figures)


def counters() -> list[Mapping[str, float]]:
    """What the readers of this process that no one uses now have counted."""
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
    """What consumers must have in common to stand in for each other.

    All but the client id, which names the reader.
    """
    config = settings.consumer(queue_per_split=True)
    same = tuple(sorted((k, _text(v)) for k, v in config.items() if k != "client.id"))
    return settings.cluster, settings.columns, settings.stall, same
