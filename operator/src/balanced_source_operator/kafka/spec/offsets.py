"""``startingOffsets`` and ``stoppingOffsets``: where reading of each partition begins and ends."""

import enum
from typing import Annotated, Final

from pydantic import ConfigDict, Field

from balanced_source_operator.contract.base import LINE, NUMBER, Model, rule, with_rules

TOPIC: Final = r"^([a-zA-Z0-9_-]|\.[a-zA-Z0-9_-]|\.\.[a-zA-Z0-9._-])[a-zA-Z0-9._-]*$"
"""What Kafka accepts: everything of these characters but `.` and `..`."""

Topic = Annotated[str, Field(min_length=1, max_length=249, pattern=TOPIC)]
"""Name of a topic."""

Group = Annotated[str, Field(min_length=1, max_length=249, pattern=LINE)]
"""Name of a consumer group."""

_Number = Annotated[str, Field(min_length=1, max_length=10, pattern=NUMBER)]
_Millis = Annotated[int, Field(ge=0, le=253402300799999)]
# The API server reads bounds as floating point numbers: 2^63 - 1 would become 2^63, and that the
# smallest integer.
_Offset = Annotated[int, Field(ge=-2, le=2**53)]
_Offsets = Annotated[dict[_Number, _Offset], Field(max_length=1000)]
_Times = Annotated[dict[_Number, _Millis], Field(max_length=1000)]


class StartingOffsetsType(enum.StrEnum):
    """Where reading begins."""

    EARLIEST = "Earliest"
    LATEST = "Latest"
    COMMITTED = "Committed"
    TIMESTAMP = "Timestamp"
    SPECIFIC = "Specific"


class StopType(enum.StrEnum):
    """Where reading ends."""

    LATEST = "Latest"
    COMMITTED = "Committed"
    TIMESTAMP = "Timestamp"
    SPECIFIC = "Specific"


class Reset(enum.StrEnum):
    """What to take where there is no answer."""

    EARLIEST = "Earliest"
    LATEST = "Latest"
    NONE = "None"


class Unlisted(enum.StrEnum):
    """What holds for partitions that are not listed."""

    EARLIEST = "Earliest"
    LATEST = "Latest"
    COMMITTED = "Committed"


_RULES: Final = (
    rule(
        "self.type == 'Timestamp' ? has(self.timestamp) || has(self.timestamps) : "
        "!has(self.timestamp) && !has(self.timestamps)",
        "type Timestamp needs timestamp or timestamps (milliseconds since the epoch), and only it"
        " takes them",
    ),
    rule(
        "self.type == 'Specific' ? has(self.offsets) : !has(self.offsets) && !has(self.unlisted)",
        "type Specific needs offsets, and only it takes offsets and unlisted",
    ),
    rule(
        "has(self.group) || !(self.type == 'Committed' || (has(self.unlisted) && self.unlisted =="
        " 'Committed'))",
        "Committed needs a group",
    ),
    rule(
        "!has(self.group) || self.type == 'Committed' || (has(self.unlisted) && self.unlisted =="
        " 'Committed')",
        "only type Committed, or unlisted: Committed, takes a group",
    ),
    rule(
        "!has(self.reset) || self.type in ['Committed', 'Timestamp'] "
        "|| (has(self.unlisted) && self.unlisted == 'Committed')",
        "only types Committed and Timestamp, or unlisted: Committed, take a reset",
    ),
)


class Choice(Model):
    """What start and stop have in common."""

    model_config = ConfigDict(json_schema_extra=with_rules(*_RULES))

    group: Group | None = None
    """Consumer group whose committed offsets are used."""

    reset: Reset | None = None
    """Offset for partitions that have no committed offset, one that is not in their log any more
    (the event RecordsGone tells which), or no record after the timestamp. None rejects such
    partitions. The default is None for type Committed and Latest for type Timestamp. None with a
    timestamp is Spark's startingOffsetsByTimestampStrategy `error`."""

    timestamp: _Millis | None = None
    """Milliseconds since the epoch: the first record at or after it (startingTimestamp of Spark's
    own source)."""

    timestamps: Annotated[dict[Topic, _Times], Field(min_length=1, max_length=256)] | None = None
    """Timestamps per topic and partition, such as orders: {"0": 1700000000000}; the JSON of Spark's
    startingOffsetsByTimestamp. Other partitions use `timestamp`. Without it they start at the
    earliest offset, or end at the latest."""

    offsets: Annotated[dict[Topic, _Offsets], Field(min_length=1, max_length=256)] | None = None
    """Offsets per topic and partition, such as orders: {"0": 23, "1": -2}; the JSON of Spark's
    startingOffsets. −2 is the earliest offset, −1 the latest."""

    unlisted: Unlisted | None = None
    """Offset for partitions that `offsets` does not list. The default is Earliest for the start and
    Latest for the end."""


class StartChoice(Choice):
    """Where reading begins."""

    type: StartingOffsetsType = StartingOffsetsType.EARLIEST
    """Earliest: the first available record. Latest: records that arrive after the partition was
    discovered. Committed: the committed offset of a consumer group. Timestamp: the first record at
    or after a timestamp. Specific: the listed offsets."""


class TopicStart(StartChoice):
    """Where reading of one topic begins."""

    topic: Topic
    """Name of the topic."""


class StartingOffsets(StartChoice):
    """Where reading starts, when the source is new.

    Partitions that appear later start at their earliest offset.
    """

    topics: Annotated[list[TopicStart], Field(max_length=256)] = []
    """Topics that start somewhere else."""


class StopChoice(Choice):
    """Where reading ends."""

    type: StopType
    """Latest: the end of the partition when the source starts. Committed: the committed offset of a
    consumer group at that time. Timestamp: before the first record at or after a timestamp.
    Specific: before the listed offsets, which may not exist yet."""


class TopicStop(StopChoice):
    """Where reading of one topic ends."""

    topic: Topic
    """Name of the topic."""


class StoppingOffsets(StopChoice):
    """Where reading ends.

    The partitions are those that exist at the start; when all are read, the query ends.
    """

    topics: Annotated[list[TopicStop], Field(max_length=256)] = []
    """Topics that end somewhere else."""
