"""Options of Kafka: the names of Spark's own Kafka source, and some more."""

from collections.abc import Mapping
from typing import Final

from balanced_source_spark.contract.option_table import Option

_READ: Final = "What is read"
_RANGE: Final = "Where reading starts and ends"
_ROWS: Final = "Rows"
_BATCHES: Final = "Micro-batches"
_RUNS: Final = "How it runs"
_OTHERS: Final = "Options of Spark's own source without an effect"

_RETRIED: Final = "a request is retried until the broker answers"
_INSTEAD: Final[Mapping[str, str]] = {
    "minPartitions": (
        "`parallelism` sets the exact number of readers, and `maxRecordsPerReader` divides large"
        " shares"
    ),
    "maxRecordsPerPartition": "`maxRecordsPerReader` divides large shares",
    "groupIdPrefix": "readers join no consumer group. For tools that watch lag, set `commitGroup`",
    "kafkaConsumer.pollTimeoutMs": "a task that makes no progress for 120 s fails",
    "fetchOffset.numRetries": _RETRIED,
    "fetchOffset.retryIntervalMs": _RETRIED,
}
"""Option → what happens instead."""

OPTIONS: Final = (
    Option(
        name="kafka.bootstrap.servers",
        group=_READ,
        is_embedded=True,
        meaning=(
            "Brokers (`host:port`, separated by commas): the driver assigns by itself, without an"
            " operator."
        ),
    ),
    Option(
        name="kafka.*",
        group=_READ,
        is_embedded=True,
        meaning=(
            "Any other property of librdkafka or of a Java client, with the prefix `kafka.`; some"
            " are reserved. Secrets are hidden. `${env:NAME}` stands for the value of an"
            " environment variable of the driver."
        ),
    ),
    Option(
        name="tokenProvider",
        group=_READ,
        is_embedded=True,
        meaning=(
            "`module:function` that returns a token for OAUTHBEARER and the time when it expires,"
            " in seconds since the epoch. It is called by the driver and by tasks, which then use"
            " the Python reader."
        ),
    ),
    Option(
        name="subscribe",
        group=_READ,
        is_embedded=True,
        meaning=(
            "Topics, separated by commas. Exactly one of `subscribe`, `subscribePattern` and"
            " `assign`."
        ),
    ),
    Option(
        name="subscribePattern",
        group=_READ,
        is_embedded=True,
        meaning="Regular expression that the whole name of a topic must match.",
    ),
    Option(
        name="assign",
        group=_READ,
        is_embedded=True,
        meaning='Partitions as JSON, such as `{"orders":[0,1]}`.',
    ),
    Option(
        name="discoveryIntervalSeconds",
        group=_READ,
        default="`300`",
        is_embedded=True,
        meaning="Seconds between two discoveries of topics and partitions; `0`: only at the start.",
    ),
    Option(
        name="failOnDataLoss",
        group=_READ,
        default="`true`",
        is_embedded=True,
        meaning=(
            "`true`: the query ends with an error when records were deleted before they were "
            "read. `false`: it continues with the available records."
        ),
    ),
    Option(
        name="commitGroup",
        group=_READ,
        is_embedded=True,
        meaning=(
            "Consumer group to which positions are committed, for tools that watch lag. "
            "Positions in the Spark checkpoint always win."
        ),
    ),
    Option(
        name="startingOffsets",
        group=_RANGE,
        default="`latest`; batch: `earliest`",
        is_embedded=True,
        meaning=(
            '`earliest`, `latest`, or offsets as JSON such as `{"orders":{"0":23,"1":-2}}` (−2'
            " earliest, −1 latest). A query that continues from its Spark checkpoint ignores all"
            " options about the start."
        ),
    ),
    Option(
        name="startingTimestamp",
        group=_RANGE,
        is_embedded=True,
        meaning=(
            "Milliseconds since the epoch: the first record at or after it. Wins over "
            "`startingOffsetsByTimestamp` and `startingOffsets`."
        ),
    ),
    Option(
        name="startingOffsetsByTimestamp",
        group=_RANGE,
        is_embedded=True,
        meaning="Milliseconds per topic and partition as JSON. Wins over `startingOffsets`.",
    ),
    Option(
        name="startingOffsetsByTimestampStrategy",
        group=_RANGE,
        default="`error`",
        is_embedded=True,
        meaning="For partitions without a record after the timestamp: `error` or `latest`.",
    ),
    Option(
        name="endingOffsets",
        group=_RANGE,
        default="batch: `latest`",
        is_embedded=True,
        meaning=(
            "As `startingOffsets`. A streaming query with an end is bounded: when everything has"
            " been read, it ends with `trigger(availableNow=True)`, or if"
            " `balanced_source_spark.stop_when_finished(query)` was called. The end cannot be"
            " changed while the Spark checkpoint stays. A batch query reads what there is, and"
            " warns if that is less."
        ),
    ),
    Option(
        name="endingTimestamp",
        group=_RANGE,
        is_embedded=True,
        meaning=(
            "Milliseconds since the epoch: reading ends before the first record at or after it."
        ),
    ),
    Option(
        name="endingOffsetsByTimestamp",
        group=_RANGE,
        is_embedded=True,
        meaning="Milliseconds per topic and partition as JSON.",
    ),
    Option(
        name="includeHeaders",
        group=_ROWS,
        default="`false`",
        meaning="Whether rows have a column `headers`.",
    ),
    Option(
        name="columns",
        group=_ROWS,
        default="all but `headers`",
        meaning=(
            "Columns of the rows, separated by commas, in this order. Columns that are not listed"
            " are not created."
        ),
    ),
    Option(
        name="maxOffsetsPerTrigger",
        group=_BATCHES,
        is_embedded=True,
        meaning="Maximum number of offsets that a micro-batch reads, over all splits.",
    ),
    Option(
        name="maxOffsetsPerSplit",
        group=_BATCHES,
        is_embedded=True,
        meaning="Maximum number of offsets that a micro-batch reads from one split.",
    ),
    Option(
        name="maxBytesPerTrigger",
        group=_BATCHES,
        is_embedded=True,
        meaning=(
            "Maximum number of bytes of keys, values and headers that a micro-batch reads;"
            " estimated."
        ),
    ),
    Option(
        name="minOffsetsPerTrigger",
        group=_BATCHES,
        is_embedded=True,
        meaning="Minimum number of available offsets before a micro-batch begins.",
    ),
    Option(
        name="maxTriggerDelay",
        group=_BATCHES,
        default="`15m`",
        is_embedded=True,
        meaning=(
            "Time after which a micro-batch begins although fewer offsets than"
            " `minOffsetsPerTrigger` are available."
        ),
    ),
    Option(
        name="reader",
        group=_RUNS,
        default="`auto`",
        meaning="`native`, `python`, or `auto`: native if it is installed.",
    ),
    Option(
        name="prefetchBytes",
        group=_RUNS,
        default="64 MiB",
        meaning="Maximum number of bytes that one reader fetches ahead.",
    ),
    *(
        Option(
            name=name,
            group=_OTHERS,
            instead=instead,
            meaning=f"The query logs one warning: {instead}.",
        )
        for name, instead in _INSTEAD.items()
    ),
)
"""In the order of the reference."""
