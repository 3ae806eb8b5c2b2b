"""The options of Kinesis, in the order of the reference."""

from typing import Final

from balanced_source_spark.contract.option_table import Option

_READ: Final = "Kinesis"
_SERVER: Final = "Kinesis: access"

OPTIONS: Final = (
    Option(
        name="streams",
        group=_READ,
        is_embedded=True,
        meaning="Names or ARNs of the streams, separated by commas.",
    ),
    Option(
        name="startingPosition",
        group=_READ,
        default="`TRIM_HORIZON`",
        is_embedded=True,
        meaning=(
            "Where reading of a new stream starts: `TRIM_HORIZON` (the oldest record), `LATEST` "
            "(records that arrive from now on), `AT_TIMESTAMP` or `SEQUENCE_NUMBERS`."
        ),
    ),
    Option(
        name="startingTimestamp",
        group=_READ,
        is_embedded=True,
        meaning=(
            "For `AT_TIMESTAMP`: a time such as `2026-01-31T12:00:00Z`, or milliseconds since the"
            " epoch."
        ),
    ),
    Option(
        name="startingSequenceNumbers",
        group=_READ,
        is_embedded=True,
        meaning=(
            "For `SEQUENCE_NUMBERS`: a JSON object of streams, with an object of shards and the"
            ' number of the first record, such as `{"orders": {"shardId-000000000001": "4959…"}}`.'
            " Ancestors of these shards are not read, other shards from their oldest record."
        ),
    ),
    Option(
        name="discoveryInterval",
        group=_READ,
        default="`30s`",
        is_embedded=True,
        meaning=(
            "Time between two listings of shards. Children of a shard that was read to its end are"
            " listed at once."
        ),
    ),
    Option(
        name="onDataLoss",
        group=_READ,
        default="`Fail`",
        is_embedded=True,
        meaning=(
            "What happens if records expired before they were read, or a stream was deleted and"
            " created again: `Fail`, or `Continue` with the records that are left."
        ),
    ),
    Option(
        name="kinesisRegion",
        group=_SERVER,
        is_embedded=True,
        meaning=(
            "Region of the streams. Absent: that of the ARN, or the region of the driver's and"
            " executors' environment."
        ),
    ),
    Option(
        name="kinesisEndpoint",
        group=_SERVER,
        is_embedded=True,
        meaning="URL of a Kinesis server. Absent: AWS.",
    ),
    Option(
        name="kinesisSecret",
        group=_SERVER,
        is_embedded=True,
        meaning=(
            "Name of a folder in `secretsDir` with the files `accessKeyId` and `secretAccessKey`,"
            " and optionally `sessionToken`. Absent: the standard chain of the driver and the"
            " executors (environment, profile, role)."
        ),
    ),
)
