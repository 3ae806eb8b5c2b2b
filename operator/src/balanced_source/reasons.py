"""Reasons of conditions, events and log lines, with cause and remedy.

Connectors may add words of their own.
"""

from balanced_source.reason_kinds import ExplainedReason, ReasonKind


class Reason(ExplainedReason):
    """All reasons of this project.

    The order of those of kind OPERATION is their severity: the worst problem heads the condition
    Degraded. Problems of the source rank with DISCOVERY_FAILED.
    """

    INTERNAL_ERROR = (
        "InternalError",
        ReasonKind.OPERATION,
        (
            "The operator, or the enumerator in a driver, failed and started over from the stored"
            " state."
        ),
        "Report the message and the log.",
    )
    STATE_CORRUPT = (
        "StateCorrupt",
        ReasonKind.OPERATION,
        "The enumerator state in the ConfigMap cannot be read. The running query is not affected.",
        (
            "Restore the ConfigMap from a backup, or delete it to rebuild the state from the"
            " driver's report."
        ),
    )
    INVALID_SPEC = (
        "InvalidSpec",
        ReasonKind.OPERATION,
        (
            "The spec is invalid. The last valid one stays in effect, except for `suspend` and"
            " `parallelism`."
        ),
        "Correct the field that the message names.",
    )
    CONNECTOR_BROKEN = (
        "ConnectorBroken",
        ReasonKind.OPERATION,
        (
            "The source's connector is missing, broken or registered by two packages. The last"
            " valid spec stays in effect."
        ),
        "Build the operator's image with exactly one package that has this connector.",
    )
    PERMISSION_MISSING = (
        "PermissionMissing",
        ReasonKind.OPERATION,
        "The operator's service account lacks a right.",
        "Install the roles of the Helm chart.",
    )
    QUOTA_EXCEEDED = (
        "QuotaExceeded",
        ReasonKind.OPERATION,
        "A ResourceQuota or LimitRange refused an object.",
        "Raise the quota, or delete objects that are not needed.",
    )
    ADMISSION_DENIED = (
        "AdmissionDenied",
        ReasonKind.OPERATION,
        "An admission policy or webhook refused an object.",
        "Change the BalancedSource or the policy.",
    )
    OBJECT_INVALID = (
        "ObjectInvalid",
        ReasonKind.OPERATION,
        "The API server found an object invalid.",
        "Correct the field that the message names.",
    )
    API_SERVER_REFUSED = (
        "ApiServerRefused",
        ReasonKind.OPERATION,
        "The API server refused for another cause, or had an error that lasted 10 seconds.",
        "Check the cause that the message names.",
    )
    FOREIGN_OBJECT = (
        "ForeignObject",
        ReasonKind.OPERATION,
        "An object has a name that the operator needs and belongs to another owner.",
        (
            "Delete or rename the object. After a restore, see [Backup and"
            " restore](../operations.md#backup-and-restore)."
        ),
    )
    STATE_CONFLICT = (
        "StateConflict",
        ReasonKind.OPERATION,
        (
            "Two operators serve the same source. As an event: the operator lost one race, and read"
            " the state again."
        ),
        "Enable leader election; give two installations different namespaces (`watchNamespaces`).",
    )
    SPARK_OPERATOR_MISSING = (
        "SparkOperatorMissing",
        ReasonKind.OPERATION,
        "The SparkApplication CRD is missing.",
        "Install Kubeflow's Spark operator.",
    )
    SERVICE_ACCOUNT_MISSING = (
        "ServiceAccountMissing",
        ReasonKind.OPERATION,
        "The service account of the driver does not exist in the namespace.",
        "Create it, with what Spark needs to run executors.",
    )
    DRIVER_CANNOT_START = (
        "DriverCannotStart",
        ReasonKind.OPERATION,
        "A container of the driver pod cannot start, for example because its image is missing.",
        "See the message: image, pull Secret or pod template.",
    )
    DRIVER_UNSCHEDULABLE = (
        "DriverUnschedulable",
        ReasonKind.OPERATION,
        "No node has taken the driver pod for 30 seconds.",
        "Add nodes, or ask for less.",
    )
    SUBMISSION_FAILED = (
        "SubmissionFailed",
        ReasonKind.OPERATION,
        "The Spark operator could not submit the application, and tries again.",
        "Correct `spec.application`.",
    )
    RESTART_LIMIT_REACHED = (
        "RestartLimitReached",
        ReasonKind.OPERATION,
        "The application failed `spec.restart.maxFailures` times in a row, and stays with its log.",
        "Delete the application, or raise the limit.",
    )
    APPLICATION_ENDED = (
        "ApplicationEnded",
        ReasonKind.OPERATION,
        "The application completed although its source is unbounded.",
        "Let the program wait for the query.",
    )
    APPLICATION_UNKNOWN = (
        "ApplicationUnknown",
        ReasonKind.OPERATION,
        "The Spark operator does not know the state of the driver any more.",
        "Check the driver's node.",
    )
    APPLICATION_RESTARTING = (
        "ApplicationRestarting",
        ReasonKind.OPERATION,
        (
            "The driver failed, and the Spark operator restarts it. The message has the cause, such"
            " as OOMKilled."
        ),
        "See the driver's log.",
    )
    SOURCE_IN_USE = (
        "SourceInUse",
        ReasonKind.OPERATION,
        (
            "The application failed because another query reads the source. It is not started"
            " meanwhile."
        ),
        (
            "Stop the other query, or give it [a source of its"
            " own](../protocol.md#one-query-per-source)."
        ),
    )
    APPLICATION_FAILED = (
        "ApplicationFailed",
        ReasonKind.OPERATION,
        "The application failed. It is kept with its log for a while and then started again.",
        "See the driver's log.",
    )
    APPLICATION_STUCK = (
        "ApplicationStuck",
        ReasonKind.OPERATION,
        "Nothing happened for 5 minutes. The application is created again.",
        "Check the Spark operator.",
    )
    ROLLED_BACK = (
        "RolledBack",
        ReasonKind.OPERATION,
        (
            "The application was not healthy in time with new settings. The last healthy ones are"
            " in effect again."
        ),
        "Correct the spec, or change `spec.application.restart.nonce` to try again.",
    )
    HOST_LOST = (
        "HostLost",
        ReasonKind.OPERATION,
        (
            "A host has not reported for `spec.application.hostLossPolicy.after`. The message says"
            " who reads its splits."
        ),
        "See the application and the driver's pod of that host.",
    )
    READERS_MISSING = (
        "ReadersMissing",
        ReasonKind.OPERATION,
        "Readers have not registered in time. Nothing is assigned to them until they do.",
        "See the log of the driver's pod.",
    )
    DISCOVERY_FAILED = (
        "DiscoveryFailed",
        ReasonKind.OPERATION,
        "The splits of a part of the source, such as a cluster, could not be listed.",
        "See the message. The operator retries automatically, at least once a minute.",
    )
    OWNER_REFERENCE_MISSING = (
        "OwnerReferenceMissing",
        ReasonKind.OPERATION,
        "A SparkApplication would outlive its source.",
        "Restore its owner reference, or delete it.",
    )
    APPLICATION_STATE_WRONG = (
        "ApplicationStateWrong",
        ReasonKind.OPERATION,
        (
            "The SparkApplication is FAILED, but its driver pod still runs. The operator does not"
            " touch it."
        ),
    )
    HASH_COLLAPSES = (
        "HashCollapses",
        ReasonKind.OPERATION,
        (
            "`parallelism` is a multiple of 31, where the strategy Hash puts nearly all topics on"
            " one reader."
        ),
        "Use RoundRobin, or another parallelism.",
    )

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
