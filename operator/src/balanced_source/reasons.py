"""Reasons of conditions, events and log lines, with cause and remedy.

Connectors may add words of their own.
"""

from balanced_source import operation_reasons
from balanced_source.reason_kinds import ExplainedReason, ReasonKind


class Reason(ExplainedReason):
    """All reasons of this project.

    The order of those of kind OPERATION is their severity: the worst problem heads the condition
    Degraded. Problems of the source rank with DISCOVERY_FAILED.
    """

    INTERNAL_ERROR = operation_reasons.INTERNAL_ERROR
    STATE_CORRUPT = operation_reasons.STATE_CORRUPT
    INVALID_SPEC = operation_reasons.INVALID_SPEC
    CONNECTOR_BROKEN = operation_reasons.CONNECTOR_BROKEN
    PERMISSION_MISSING = operation_reasons.PERMISSION_MISSING
    QUOTA_EXCEEDED = operation_reasons.QUOTA_EXCEEDED
    ADMISSION_DENIED = operation_reasons.ADMISSION_DENIED
    OBJECT_INVALID = operation_reasons.OBJECT_INVALID
    API_SERVER_REFUSED = operation_reasons.API_SERVER_REFUSED
    FOREIGN_OBJECT = operation_reasons.FOREIGN_OBJECT
    STATE_CONFLICT = operation_reasons.STATE_CONFLICT
    SPARK_OPERATOR_MISSING = operation_reasons.SPARK_OPERATOR_MISSING
    SERVICE_ACCOUNT_MISSING = operation_reasons.SERVICE_ACCOUNT_MISSING
    DRIVER_CANNOT_START = operation_reasons.DRIVER_CANNOT_START
    DRIVER_UNSCHEDULABLE = operation_reasons.DRIVER_UNSCHEDULABLE
    SUBMISSION_FAILED = operation_reasons.SUBMISSION_FAILED
    RESTART_LIMIT_REACHED = operation_reasons.RESTART_LIMIT_REACHED
    APPLICATION_ENDED = operation_reasons.APPLICATION_ENDED
    APPLICATION_UNKNOWN = operation_reasons.APPLICATION_UNKNOWN
    APPLICATION_RESTARTING = operation_reasons.APPLICATION_RESTARTING
    SOURCE_IN_USE = operation_reasons.SOURCE_IN_USE
    APPLICATION_FAILED = operation_reasons.APPLICATION_FAILED
    APPLICATION_STUCK = operation_reasons.APPLICATION_STUCK
    ROLLED_BACK = operation_reasons.ROLLED_BACK
    HOST_LOST = operation_reasons.HOST_LOST
    READERS_MISSING = operation_reasons.READERS_MISSING
    DISCOVERY_FAILED = operation_reasons.DISCOVERY_FAILED
    OWNER_REFERENCE_MISSING = operation_reasons.OWNER_REFERENCE_MISSING
    APPLICATION_STATE_WRONG = operation_reasons.APPLICATION_STATE_WRONG
    HASH_COLLAPSES = operation_reasons.HASH_COLLAPSES

    AUTHENTICATION_FAILED = (
        "AuthenticationFailed",
        ReasonKind.SOURCE,
        "A broker refused the credentials.",
        (
            "Check the Secret that `propertiesFrom` names. A rotated Secret is picked up"
            " automatically."
        ),
    )
    TLS_FAILED = (
        "TlsFailed",
        ReasonKind.SOURCE,
        "The TLS handshake with a broker failed.",
        "Check `security.protocol` and the certificates.",
    )
    INVALID_PROPERTIES = (
        "InvalidProperties",
        ReasonKind.SOURCE,
        "The client library refused a property of a cluster.",
        "Correct `properties`, or the Secret that `propertiesFrom` names.",
    )
    NOT_AUTHORIZED = (
        "NotAuthorized",
        ReasonKind.SOURCE,
        "The user of the source lacks a right.",
        "Grant Describe and Read on the topics and the group, and Describe on the cluster.",
    )
    CLUSTER_UNREACHABLE = (
        "ClusterUnreachable",
        ReasonKind.SOURCE,
        "A cluster does not answer. Other clusters are read meanwhile.",
        "Check `bootstrapServers`, the network and the brokers.",
    )
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
    SECRET_NOT_READABLE = (
        "SecretNotReadable",
        ReasonKind.SOURCE,
        "The operator cannot read a Secret of a cluster.",
        "Create the Secret in the namespace of the source, or correct its name.",
    )
    NEEDS_OWNER = (
        "NeedsOwner",
        ReasonKind.SOURCE,
        (
            "Listing the splits needs files or an identity that the source does not name. The"
            " operator's are not used."
        ),
        (
            "Use a connector that lets the driver list its splits or takes a Secret, or read"
            " without an operator."
        ),
    )
    READ_SPLITS_UNKNOWN = (
        "ReadSplitsUnknown",
        ReasonKind.SOURCE,
        (
            "The state was lost or is an older copy: it is unknown which splits have been read."
            " Reading stops."
        ),
        "Restore the newest state from a backup, or allow the source to repeat records.",
    )
    SPLITS_SKIPPED = (
        "SplitsSkipped",
        ReasonKind.LOSS,
        "Files changed, disappeared or arrived too late. The source's policy skips them.",
        "To read such a file, write it again under a new name.",
    )
    SPLITS_LOST = (
        "SplitsLost",
        ReasonKind.LOSS,
        (
            "Files changed, disappeared or arrived too late, or shards expired unread. The source's"
            " policy stops reading."
        ),
        "Restore the files that the message names, or change the policy as it says.",
    )
    SECRET_NOT_FOUND = (
        "SecretNotFound",
        ReasonKind.SOURCE,
        "A folder with the files of a Secret is missing where the query or local mode runs.",
        "Mount the Secret, or correct its name.",
    )
    UNKNOWN_TOPIC = (
        "UnknownTopic",
        ReasonKind.SOURCE,
        "A topic, a partition or a stream of the subscription does not exist.",
        "Create it, or correct the subscription.",
    )
    NO_TOPIC_MATCHES = (
        "NoTopicMatches",
        ReasonKind.SOURCE,
        "No topic of a cluster matches the pattern. The whole name must match.",
        "Create a topic, or correct the pattern.",
    )
    OFFSET_OUT_OF_RANGE = (
        "OffsetOutOfRange",
        ReasonKind.SOURCE,
        "A start offset does not exist in its partition.",
        "Correct `startingOffsets`; -2 is the earliest offset and -1 the latest.",
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
    SPLITS_RECREATED = (
        "SplitsRecreated",
        ReasonKind.SOURCE,
        (
            "Splits were deleted and created again, and are not read: unread records of the old"
            " ones are gone."
        ),
        "Set `onDataLoss: Continue` to read the new ones.",
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
    CHECKPOINT_LOST = (
        "CheckpointLost",
        ReasonKind.SOURCE,
        (
            "The Spark checkpoint is empty although the source was read before. Some sinks skip new"
            " records after that."
        ),
        "See [Spark checkpoints](../checkpoints.md).",
    )
    CHECKPOINT_OLDER = (
        "CheckpointOlder",
        ReasonKind.SOURCE,
        (
            "The Spark checkpoint is an older copy. Records are delivered again, and some sinks"
            " skip new ones."
        ),
        "See [Spark checkpoints](../checkpoints.md).",
    )
    AT_LEAST_ONCE = (
        "AtLeastOnce",
        ReasonKind.SOURCE,
        (
            "The connector says that its splits cannot be read again. After a failure, records come"
            " twice or are lost."
        ),
        "Use a sink that recognises records by a key, or a source that keeps its records.",
    )
    JOURNAL_UNREACHABLE = (
        "JournalUnreachable",
        ReasonKind.SOURCE,
        "The driver cannot read or write the journal. No micro-batch begins; nothing is lost.",
        (
            "Check `journalLocation`: mounted and writable, or reachable with credentials, for"
            " driver and executors."
        ),
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

    AS_EXPECTED = ("AsExpected", ReasonKind.STATE, "No problem is known.")
    STABLE = ("Stable", ReasonKind.STATE, "No change is in progress.")
    READING = ("Reading", ReasonKind.STATE, "The readers read their splits.")
    FINISHED = ("Finished", ReasonKind.STATE, "A bounded source has been read to its end.")
    SUSPENDED = ("Suspended", ReasonKind.STATE, "`spec.suspend` is set.", "Remove it to continue.")
    NOT_READING = ("NotReading", ReasonKind.STATE, "No reader has adopted an assignment yet.")
    DISCOVERING = ("Discovering", ReasonKind.STATE, "The first discovery has not finished.")
    RECOVERING = (
        "Recovering",
        ReasonKind.STATE,
        "Readers of a host have to register before anything is assigned.",
    )
    WAITING_FOR_READERS = (
        "WaitingForReaders",
        ReasonKind.STATE,
        "The application runs; its readers register soon.",
    )
    ADOPTING = (
        "Adopting",
        ReasonKind.STATE,
        "A new epoch is published. The next micro-batch adopts it.",
    )
    STARTING_APPLICATION = (
        "StartingApplication",
        ReasonKind.STATE,
        "The application is being started.",
    )
    APPLICATION_STOPPING = (
        "ApplicationStopping",
        ReasonKind.STATE,
        "The application is being stopped.",
    )
    REPLACING_APPLICATION = (
        "ReplacingApplication",
        ReasonKind.STATE,
        "Settings of the application changed: it is stopped, and started with the new ones.",
    )
    WAITING_FOR_OLD_APPLICATION = (
        "WaitingForOldApplication",
        ReasonKind.STATE,
        "Pods of the former application still exist; no second driver starts before they are gone.",
    )
    WAITING_FOR_NONCE = (
        "WaitingForNonce",
        ReasonKind.STATE,
        "New settings need a restart, and the policy is `OnNonce`.",
        "Change `spec.application.restart.nonce` to restart the application.",
    )
    WAITING_FOR_WINDOW = (
        "WaitingForWindow",
        ReasonKind.STATE,
        "New settings need a restart, and the policy is `Window`.",
        (
            "Wait for the window, or change `spec.application.restart.nonce` to restart the"
            " application now."
        ),
    )
    PAUSED_BY_ANNOTATION = operation_reasons.PAUSED_BY_ANNOTATION
    WAITING_FOR_OTHER_SOURCES = (
        "WaitingForOtherSources",
        ReasonKind.STATE,
        "New settings need a restart, and the maximum number of sources is already restarting.",
    )

    WITHIN_BOUNDS = (
        "WithinBounds",
        ReasonKind.AUTOSCALING,
        (
            "`parallelism` was below `minReaders` or above `maxReaders`, and is changed to the"
            " nearest bound."
        ),
    )
    MEASURING = (
        "Measuring",
        ReasonKind.AUTOSCALING,
        "The load is being measured: the driver has just started, or splits have changed.",
    )
    WITHIN_TARGET = (
        "WithinTarget",
        ReasonKind.AUTOSCALING,
        "The readers suffice for the load, and fewer would not.",
    )
    SCALED_UP = (
        "ScaledUp",
        ReasonKind.AUTOSCALING,
        "More arrives than the readers can process at the target.",
    )
    SCALED_DOWN = (
        "ScaledDown",
        ReasonKind.AUTOSCALING,
        "Fewer readers sufficed for `scaleDownDelay`.",
    )
    PROBING = (
        "Probing",
        ReasonKind.AUTOSCALING,
        (
            "Readers have had no backlog for `scaleDownDelay`, so fewer are tried to measure their"
            " capacity."
        ),
    )
    SCALE_DOWN_DELAYED = (
        "ScaleDownDelayed",
        ReasonKind.AUTOSCALING,
        "Fewer readers suffice, but not for long enough.",
    )
    CATCHING_UP = (
        "CatchingUp",
        ReasonKind.AUTOSCALING,
        "The readers are working off a backlog fast enough.",
    )
    SPLITS_UNEVEN = (
        "SplitsUneven",
        ReasonKind.AUTOSCALING,
        (
            "Readers are added because splits differ in load, although fewer could carry a balanced"
            " load."
        ),
        "Use strategy `LoadAware`, or set `pipeline.maxRecordsPerReader`.",
    )
    HOT_SPLIT = (
        "HotSplit",
        ReasonKind.AUTOSCALING,
        "One split gets more than one reader can process. More readers do not help.",
        "Spread its keys over more partitions, or set `pipeline.maxRecordsPerReader`.",
    )
    DOWNSTREAM_LIMIT = (
        "DownstreamLimit",
        ReasonKind.AUTOSCALING,
        "The last increase hardly raised the throughput: the readers are not the bottleneck.",
        "Check the sink, the transformation and the brokers.",
    )
    AT_MAXIMUM = (
        "AtMaximum",
        ReasonKind.AUTOSCALING,
        "The load needs more readers than `maxReaders`.",
        "Raise `maxReaders`.",
    )
    LAG_UNKNOWN = (
        "LagUnknown",
        ReasonKind.AUTOSCALING,
        "The driver does not report, or cannot reach a broker. The number of readers stays.",
        "See the condition `Ready`.",
    )
    SCALING_REFUSED = (
        "ScalingRefused",
        ReasonKind.AUTOSCALING,
        "The API server refused the change of `parallelism`.",
        "Grant `patch` on `balancedsources/scale`: install the roles of the Helm chart.",
    )

    APPLICATION_CREATED = (
        "ApplicationCreated",
        ReasonKind.EVENT,
        "A SparkApplication was created.",
    )
    SPLITS_REMOVED = (
        "SplitsRemoved",
        ReasonKind.EVENT,
        "Splits left the assignment: not subscribed any more, or deleted.",
    )
    PART_SWITCHED = (
        "PartSwitched",
        ReasonKind.EVENT,
        "A part of a hybrid source was read; the next part begins.",
    )
    RECORDS_GONE = (
        "RecordsGone",
        ReasonKind.EVENT,
        (
            "A topic was deleted, or new partitions did not begin at offset 0. The message names"
            " the unread records."
        ),
        (
            "If records were lost, produce them again. Under `onDataLoss: Fail` set `Continue` to"
            " read a recreated topic."
        ),
    )
    SPLITS_RETURNED = (
        "SplitsReturned",
        ReasonKind.EVENT,
        "Removed splits are back, and continue at their retained positions.",
    )
    SPLITS_DROPPED = (
        "SplitsDropped",
        ReasonKind.EVENT,
        "A lost reader had splits that are not subscribed any more.",
    )
    RETENTION_ENDED = (
        "RetentionEnded",
        ReasonKind.EVENT,
        "The retained positions of removed splits were dropped.",
    )
    LOADS_DRIFTED = (
        "LoadsDrifted",
        ReasonKind.EVENT,
        "Readers' loads have differed for a while, so splits move.",
    )
    STATE_OUTDATED = (
        "StateOutdated",
        ReasonKind.EVENT,
        (
            "The stored state is older than the published assignment or the reports. Readers report"
            " their positions again."
        ),
        "Nothing, if you restored the state. Otherwise find out who changed it.",
    )
    STATE_RESTORED = (
        "StateRestored",
        ReasonKind.EVENT,
        "Another client changed or deleted the stored state; it was written again.",
        "Find out who did.",
    )
    ASSIGNMENT_RESTORED = (
        "AssignmentRestored",
        ReasonKind.EVENT,
        "Another client changed or deleted the published assignment; it was written again.",
        "Find out who did.",
    )
    OWNER_REFERENCE_RESTORED = (
        "OwnerReferenceRestored",
        ReasonKind.EVENT,
        (
            "Another client removed the owner reference or the label of an object; it was written"
            " again."
        ),
        "Find out who did.",
    )
