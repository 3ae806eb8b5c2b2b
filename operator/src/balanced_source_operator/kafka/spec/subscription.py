"""``subscription``: which partitions are read."""

from typing import Annotated

from pydantic import ConfigDict, Field

from balanced_source_operator.contract.base import LINE, Model, rule, with_rules
from balanced_source_operator.kafka.spec.offsets import Topic
from balanced_source_operator.kafka.spec.streams import Stream

Pattern = Annotated[
    str,
    Field(
        min_length=1,
        max_length=512,
        pattern=LINE,
        json_schema_extra=with_rules(
            # An invalid expression is an error of evaluation, which refuses the object.
            rule(
                "''.matches(self) || !''.matches(self)",
                "not a valid regular expression (RE2 syntax)",
            ),
        ),
    ),
]
"""A regular expression; the whole name must match."""


class TopicPartitions(Model):
    """Partitions of one topic."""

    topic: Topic
    """Name of the topic."""

    partitions: Annotated[
        list[Annotated[int, Field(ge=0, le=2147483647)]], Field(min_length=1, max_length=1000)
    ]
    """Numbers of the partitions."""


class Subscription(Model):
    """Which partitions are read; exactly one of the five (excludePattern needs topicPattern).

    The same choice applies to every cluster. It can be changed at any time: what stays continues
    where it is, what is new starts at its earliest offset, what leaves keeps its positions for
    removedClusterRetention.
    """

    model_config = ConfigDict(
        json_schema_extra=with_rules(
            rule(
                "[has(self.topics), has(self.topicPattern), has(self.partitions),"
                " has(self.streams), has(self.streamPattern)].filter(x, x).size() == 1",
                "set exactly one of topics, topicPattern, partitions, streams and streamPattern",
            ),
            rule(
                "!has(self.excludePattern) || has(self.topicPattern)",
                "excludePattern needs topicPattern",
            ),
        )
    )

    topics: Annotated[list[Topic], Field(min_length=1, max_length=1000)] | None = None
    """All partitions of these topics."""

    topic_pattern: Pattern | None = None
    """All partitions of the topics whose whole name matches this regular expression: literals, .
    [a-z] [^a-z] \\d \\w \\s, groups, | and * + ? {2,5}. Discovery finds topics that are created
    later."""

    exclude_pattern: Pattern | None = None
    """Excludes topics whose whole name matches this regular expression from those that topicPattern
    matches."""

    partitions: Annotated[list[TopicPartitions], Field(min_length=1, max_length=256)] | None = None
    """Exactly these partitions."""

    streams: Annotated[list[Stream], Field(min_length=1, max_length=256)] | None = None
    """Ids of streams in the metadata of clustersFrom."""

    stream_pattern: Pattern | None = None
    """Streams in the metadata of clustersFrom whose whole id matches."""
