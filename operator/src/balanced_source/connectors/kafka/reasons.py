"""Reasons of problems that only Kafka has; see `balanced_source.reasons`."""

from balanced_source.reason_kinds import ExplainedReason, ReasonKind


class KafkaReason(ExplainedReason):
    """States why a Kafka source has a problem."""

    NO_LEADER = (
        "NoLeader",
        ReasonKind.SOURCE,
        "Partitions have no leader that answers. Other partitions are read meanwhile.",
        "Check the brokers that the message names.",
    )
    OPEN_TRANSACTION = (
        "OpenTransaction",
        ReasonKind.SOURCE,
        (
            "A transaction of a producer has been open for long. Committed records behind it cannot"
            " be read, and are not counted as lag."
        ),
        (
            "Wait for the producer. If it is gone, find the transaction with `kafka-transactions.sh"
            " find-hanging`, and end it with `kafka-transactions.sh abort`."
        ),
    )
    UNKNOWN_TOPIC = (
        "UnknownTopic",
        ReasonKind.SOURCE,
        "A topic that the source names does not exist.",
        "Create it, or correct its name.",
    )
    OFFSET_OUT_OF_RANGE = (
        "OffsetOutOfRange",
        ReasonKind.SOURCE,
        "A start offset does not exist in its partition.",
        (
            "Correct the offset that the message names, in `startingOffsets` or in the history of a"
            " hybrid source, to one that the partition has."
        ),
    )
    NO_TOPIC_MATCHES = (
        "NoTopicMatches",
        ReasonKind.SOURCE,
        "No topic of a cluster matches the pattern. The whole name must match.",
        "Create a topic, or correct the pattern.",
    )
    NO_COMMITTED_OFFSET = (
        "NoCommittedOffset",
        ReasonKind.SOURCE,
        "A consumer group has no commit that still exists for a partition, and `reset` is not set.",
        "Set `reset` to Earliest or Latest.",
    )
    NO_OFFSET_FOR_TIMESTAMP = (
        "NoOffsetForTimestamp",
        ReasonKind.SOURCE,
        "A partition has no record at or after the timestamp, and `reset` is not set.",
        "Set `reset` to Earliest or Latest.",
    )
    NO_OFFSET = (
        "NoOffset",
        ReasonKind.SOURCE,
        "A partition has no offset for the start or the end that is set.",
        "Set `reset` to Earliest or Latest.",
    )
    CLUSTER_REMOVED = (
        "ClusterRemoved",
        ReasonKind.SOURCE,
        (
            "A cluster was taken out of the source while a micro-batch with its records was not"
            " finished."
        ),
        "Add it again with `active: false` until that micro-batch has finished.",
    )
    TOPIC_RECREATED = (
        "TopicRecreated",
        ReasonKind.LOSS,
        (
            "A topic was deleted, or deleted and created again, while it was read. Unread records"
            " are gone."
        ),
        (
            "Under `onDataLoss: Fail` its partitions are not read: set `Continue` to read the new"
            " topic from its start."
        ),
    )
    LOG_TRUNCATED = (
        "LogTruncated",
        ReasonKind.LOSS,
        (
            "A topic's log ends before offsets that were already read: an unclean election, or a"
            " restored disk."
        ),
        (
            "Under `onDataLoss: Fail` its partitions are not read: set `Continue` to read the"
            " available records."
        ),
    )
    OFFSETS_SKIPPED = (
        "OffsetsSkipped",
        ReasonKind.LOSS,
        "Offsets were deleted before they were read. `onDataLoss: Continue` skips them.",
        "Raise the retention of the topic, or read faster.",
    )
    OFFSETS_UNCOUNTED = (
        "OffsetsUncounted",
        ReasonKind.LOSS,
        (
            "It is unknown whether offsets were deleted before they were read: their brokers did"
            " not answer. `onDataLoss: Continue` skips deleted offsets."
        ),
        "Check the brokers. The driver counts again when it reads of them next.",
    )
