"""Reasons of conditions, events and log lines, with cause and remedy.

A connector with words of its own has an enum of its own, as `connectors/kafka/reasons.py`.
"""

from balanced_source import autoscaling_reasons, operation_reasons
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
    REQUEST_UNANSWERED = operation_reasons.REQUEST_UNANSWERED
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
    APPLICATION_SUSPENDED = operation_reasons.APPLICATION_SUSPENDED
    OLD_APPLICATION_REMAINS = operation_reasons.OLD_APPLICATION_REMAINS
    REPORT_TOO_NEW = operation_reasons.REPORT_TOO_NEW
    HOST_LOST = operation_reasons.HOST_LOST
    DRIVER_SILENT = operation_reasons.DRIVER_SILENT
    READERS_MISSING = operation_reasons.READERS_MISSING
    EXECUTORS_MISSING = operation_reasons.EXECUTORS_MISSING
    QUERY_STALLED = operation_reasons.QUERY_STALLED
    DISCOVERY_FAILED = operation_reasons.DISCOVERY_FAILED
    OWNER_REFERENCE_MISSING = operation_reasons.OWNER_REFERENCE_MISSING
    APPLICATION_STATE_WRONG = operation_reasons.APPLICATION_STATE_WRONG
    HASH_COLLAPSES = operation_reasons.HASH_COLLAPSES

    AUTHENTICATION_FAILED = (
        "AuthenticationFailed",
        ReasonKind.SOURCE,
        "A server of the source refused the credentials.",
        "Check the Secret that the source names. A rotated Secret is picked up automatically.",
    )
    TLS_FAILED = (
        "TlsFailed",
        ReasonKind.SOURCE,
        "The TLS handshake with a server of the source failed.",
        "Check the protocol and the certificates that the source is configured with.",
    )
    INVALID_PROPERTIES = (
        "InvalidProperties",
        ReasonKind.SOURCE,
        "The client library of the connector refused a setting.",
        "Correct the setting that the message names, or the Secret that holds it.",
    )
    NOT_AUTHORIZED = (
        "NotAuthorized",
        ReasonKind.SOURCE,
        "The user of the source lacks a right.",
        "Grant the right that the message names.",
    )
    CLUSTER_UNREACHABLE = (
        "ClusterUnreachable",
        ReasonKind.SOURCE,
        "A part of the source, such as a cluster, does not answer. Other parts are read meanwhile.",
        "Check its address, the network and its servers.",
    )
    SECRET_NOT_READABLE = (
        "SecretNotReadable",
        ReasonKind.SOURCE,
        "The operator cannot read a Secret that the source names.",
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
        (
            "Splits, such as files, changed, disappeared or came too late. The source's policy"
            " skips them."
        ),
        "The message names them. To read such a file, write it again under a new name.",
    )
    RECORDS_SKIPPED = (
        "RecordsSkipped",
        ReasonKind.LOSS,
        "Records were gone before they were read. The source's policy skips them.",
        (
            "The logs of driver and executors say of which splits. Lengthen the retention of the"
            " source, or let more readers read."
        ),
    )
    SPLITS_LOST = (
        "SplitsLost",
        ReasonKind.LOSS,
        (
            "Splits changed, disappeared, expired unread or came too late. The source's policy"
            " stops reading."
        ),
        "Restore what the message names, or change the policy as it says.",
    )
    SPLIT_SHRUNK = (
        "SplitShrunk",
        ReasonKind.SOURCE,
        (
            "The source has less of a split than was read of it, or cannot say whether it is the"
            " same: it was cut, or replaced by an older copy. Nothing of it is read meanwhile."
        ),
        (
            "Find out who cut or restored it. One that was cut is read on when it has grown beyond"
            " what was read. If it is another one, start with a new checkpoint."
        ),
    )
    SECRET_NOT_FOUND = (
        "SecretNotFound",
        ReasonKind.SOURCE,
        "A Secret that the source names is missing, or not mounted where no operator runs.",
        "Create the Secret, or correct its name. Without an operator, mount it.",
    )
    NOT_FOUND = (
        "NotFound",
        ReasonKind.SOURCE,
        "Something that the source names, such as a stream, does not exist.",
        "Create it, or correct its name.",
    )
    POSITION_OUT_OF_RANGE = (
        "PositionOutOfRange",
        ReasonKind.SOURCE,
        "A start position does not exist in its split.",
        "Set the start position to one that the message names as available, or to a time.",
    )
    SPLITS_RECREATED = (
        "SplitsRecreated",
        ReasonKind.SOURCE,
        (
            "Splits were deleted and created again, and are not read: unread records of the old"
            " ones are gone."
        ),
        (
            "To read the new ones, set the source's policy for lost records so that it continues,"
            " and set it back once they are read."
        ),
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

    AS_EXPECTED = ("AsExpected", ReasonKind.STATE, "No problem is known.")
    STABLE = ("Stable", ReasonKind.STATE, "No change is in progress.")
    READING = ("Reading", ReasonKind.STATE, "The readers read their splits.")
    FINISHED = (
        "Finished",
        ReasonKind.STATE,
        "A bounded source has been read to its end, or a query with `availableNow` has ended.",
    )
    SUSPENDED = ("Suspended", ReasonKind.STATE, "`spec.suspend` is set.", "Remove it to continue.")
    NOT_READING = (
        "NotReading",
        ReasonKind.STATE,
        "No reader has adopted an assignment yet, or no application runs.",
    )
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
    SPLITS_LEAVING = (
        "SplitsLeaving",
        ReasonKind.STATE,
        (
            "A micro-batch that has begun may still read splits of a part that the spec leaves out,"
            " such as an inactive cluster."
        ),
        (
            "Keep that part reachable until `Progressing` is `False`. See [Draining a"
            " cluster](../operations.md#draining-a-cluster)."
        ),
    )
    DRAINING = ("Draining", ReasonKind.STATE, "A drain attempt settles what a lost host delivered.")
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

    WITHIN_BOUNDS = autoscaling_reasons.WITHIN_BOUNDS
    MEASURING = autoscaling_reasons.MEASURING
    WITHIN_TARGET = autoscaling_reasons.WITHIN_TARGET
    SCALED_UP = autoscaling_reasons.SCALED_UP
    SCALED_DOWN = autoscaling_reasons.SCALED_DOWN
    PROBING = autoscaling_reasons.PROBING
    SCALE_DOWN_DELAYED = autoscaling_reasons.SCALE_DOWN_DELAYED
    CATCHING_UP = autoscaling_reasons.CATCHING_UP
    HELD_BACK = autoscaling_reasons.HELD_BACK
    SPLITS_UNEVEN = autoscaling_reasons.SPLITS_UNEVEN
    HOT_SPLIT = autoscaling_reasons.HOT_SPLIT
    DOWNSTREAM_LIMIT = autoscaling_reasons.DOWNSTREAM_LIMIT
    AT_MAXIMUM = autoscaling_reasons.AT_MAXIMUM
    LAG_UNKNOWN = autoscaling_reasons.LAG_UNKNOWN
    NOT_MEASURABLE = autoscaling_reasons.NOT_MEASURABLE
    REBALANCE_MANUAL = autoscaling_reasons.REBALANCE_MANUAL
    SCALING_REFUSED = autoscaling_reasons.SCALING_REFUSED
    TWO_AUTOSCALERS = autoscaling_reasons.TWO_AUTOSCALERS

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
            "Splits were deleted, new splits did not begin with their first record, or the place"
            " where reading was to start is gone. The message names the unread records."
        ),
        (
            "If records were lost, produce them again. To read splits that were created again, set"
            " the source's policy for lost records so that it continues."
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
        "A reader that was lost, or a Spark checkpoint, has splits that are not subscribed.",
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
    HOST_CAME_LATE = (
        "HostCameLate",
        ReasonKind.EVENT,
        (
            "A host of an earlier life of the source, which was deleted and applied again, has"
            " started after its deadline. What others have read meanwhile of its splits is"
            " delivered twice."
        ),
        "Remove the duplicates if the sink does not. Find out why the host did not start in time.",
    )
    STATE_RESTORED = (
        "StateRestored",
        ReasonKind.EVENT,
        "Another client changed or deleted the stored state; it was written again.",
        "Find out who did.",
    )
    STATE_REBUILT = (
        "StateRebuilt",
        ReasonKind.EVENT,
        "No state was stored; it was made again from what drivers report and what was published.",
        "If no one deleted it on purpose, find out who did.",
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
