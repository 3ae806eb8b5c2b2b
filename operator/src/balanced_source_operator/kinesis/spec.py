"""``spec.source.kinesis`` as pydantic models: this branch of the CRD."""

import enum
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import ConfigDict, Field

from balanced_source.connectors.kinesis import OnShardLoss
from balanced_source_operator.contract.base import Duration, Model, ObjectName, rule, with_rules

_NAME: Final = r"([A-Za-z0-9_-]|\.[A-Za-z0-9_-]|\.\.[A-Za-z0-9._-])[A-Za-z0-9._-]*"
"""Everything of these characters but `.` and `..`."""

STREAM: Final = rf"^(arn:[a-z0-9-]+:kinesis:[a-z0-9-]+:[0-9]{{12}}:stream/)?{_NAME}$"
SHARD: Final = rf"^{_NAME}$"
SEQUENCE: Final = r"^(0|[1-9][0-9]{0,128})$"
ENDPOINT: Final = r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?$"
REGION: Final = r"^[a-z0-9][a-z0-9-]{0,63}$"

WORDS: Final[Mapping[str, str]] = {
    STREAM: "the name or the ARN of a stream",
    SHARD: "the id of a shard",
    SEQUENCE: "a sequence number",
    ENDPOINT: "an http or https URL of a host, without a path",
    REGION: "the name of a region",
}
"""What a pattern asks for."""

Stream = Annotated[str, Field(min_length=1, max_length=256, pattern=STREAM)]
Shard = Annotated[str, Field(min_length=1, max_length=128, pattern=SHARD)]
Sequence = Annotated[str, Field(min_length=1, max_length=129, pattern=SEQUENCE)]


class StartingPositionType(enum.StrEnum):
    """Where reading begins."""

    TRIM_HORIZON = "TrimHorizon"
    LATEST = "Latest"
    TIMESTAMP = "Timestamp"
    SEQUENCE_NUMBERS = "SequenceNumbers"


class StartingPosition(Model):
    """Where a stream is read from that is read for the first time."""

    model_config = ConfigDict(
        json_schema_extra=with_rules(
            rule(
                "(self.type == 'Timestamp') == has(self.timestamp)",
                "type Timestamp needs timestamp (milliseconds since the epoch), and only it"
                " takes it",
            ),
            rule(
                "(self.type == 'SequenceNumbers') == has(self.sequenceNumbers)",
                "type SequenceNumbers needs sequenceNumbers, and only it takes them",
            ),
        )
    )

    type: StartingPositionType = StartingPositionType.TRIM_HORIZON
    """TrimHorizon is the oldest record. Latest is what arrives after the source was created."""

    timestamp: Annotated[int, Field(ge=0, le=253402300799999)] | None = None
    """Time of arrival of the first record, in milliseconds since the epoch."""

    sequence_numbers: (
        Annotated[
            dict[Stream, Annotated[dict[Shard, Sequence], Field(min_length=1, max_length=1000)]],
            Field(min_length=1, max_length=100),
        ]
        | None
    ) = None
    """Stream, shard, and sequence number of the first record.

    Ancestors of these shards are not read, other shards from their oldest record.
    """


class KinesisSpec(Model):
    """Streams of Amazon Kinesis."""

    streams: Annotated[list[Stream], Field(min_length=1, max_length=100)]
    """Names or ARNs of the streams."""

    region: Annotated[str, Field(max_length=64, pattern=REGION)] | None = None
    """Region of the streams.

    Absent: that of the ARN, or that of the driver's and the executors' environment.
    """

    endpoint: Annotated[str, Field(max_length=512, pattern=ENDPOINT)] | None = None
    """URL of a Kinesis server. Absent: AWS."""

    secret: ObjectName | None = None
    """Secret in the namespace of the source with the keys accessKeyId and secretAccessKey, and
    optionally sessionToken. With it, the operator lists the shards. Absent: the driver does, and
    the credentials are those of the pods."""

    starting_position: StartingPosition = StartingPosition()
    """Where a stream is read from that is read for the first time."""

    discovery_interval: Duration = "30s"
    """Time between two listings of shards, at least 1s.

    Children of a shard that was read to its end are listed at once.
    """

    removed_stream_retention: Duration = "168h"
    """How long the positions of streams are kept that were taken out of streams. If they return
    within this time, reading continues from there. 0 drops the positions immediately."""

    on_data_loss: OnShardLoss = OnShardLoss.FAIL
    """What happens if records expired before they were read, or a stream was deleted and created
    again. Fail: reading stops, and a condition names the shards. Continue: reading continues with
    the records that are left."""
