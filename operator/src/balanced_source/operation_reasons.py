"""Reasons for problems of the operator and the application, in the order of `Reason`.

Each is a word, its kind, the cause and the remedy.
"""

from typing import Final

from balanced_source.reason_kinds import ReasonKind

INTERNAL_ERROR: Final = (
    "InternalError",
    ReasonKind.OPERATION,
    ("The operator, or the enumerator in a driver, failed and started over from the stored state."),
    "Report the message and the log.",
)
STATE_CORRUPT: Final = (
    "StateCorrupt",
    ReasonKind.OPERATION,
    (
        "The enumerator state in the ConfigMap cannot be read. A running query keeps its splits;"
        " nothing is rescaled or assigned."
    ),
    (
        "If a newer release wrote it, upgrade the operator to that release. Otherwise restore the"
        " ConfigMap from a backup, or delete it to rebuild the state from the driver's report."
    ),
)
INVALID_SPEC: Final = (
    "InvalidSpec",
    ReasonKind.OPERATION,
    (
        "The spec is invalid. The last valid one stays in effect, except for `suspend` and"
        " `parallelism`."
    ),
    "Correct the field that the message names.",
)
CONNECTOR_BROKEN: Final = (
    "ConnectorBroken",
    ReasonKind.OPERATION,
    (
        "The source's connector is missing, broken, registered by two packages, or has failed. The"
        " last valid spec stays in effect."
    ),
    (
        "Build the operator's image with exactly one package that has this connector. Report a"
        " failure to the authors of the package."
    ),
)
PERMISSION_MISSING: Final = (
    "PermissionMissing",
    ReasonKind.OPERATION,
    "The operator's service account lacks a right.",
    "Install the roles of the Helm chart.",
)
QUOTA_EXCEEDED: Final = (
    "QuotaExceeded",
    ReasonKind.OPERATION,
    "A ResourceQuota or LimitRange refused an object, such as the driver pod.",
    "Raise the quota, or delete objects that are not needed.",
)
ADMISSION_DENIED: Final = (
    "AdmissionDenied",
    ReasonKind.OPERATION,
    "An admission policy or webhook refused an object, such as the driver pod.",
    "Change the BalancedSource or the policy.",
)
OBJECT_INVALID: Final = (
    "ObjectInvalid",
    ReasonKind.OPERATION,
    "The API server found an object invalid.",
    "Correct the field that the message names.",
)
API_SERVER_REFUSED: Final = (
    "ApiServerRefused",
    ReasonKind.OPERATION,
    "The API server refused for another cause, or had an error that lasted 10 seconds.",
    "Check the cause that the message names.",
)
REQUEST_UNANSWERED: Final = (
    "RequestUnanswered",
    ReasonKind.OPERATION,
    (
        "The API server has not answered a request of the operator for 30 seconds, although it"
        " answers others. Usually an admission webhook hangs."
    ),
    (
        "Check the admission webhooks that match the kind which the message names, and the log of"
        " the API server."
    ),
)
FOREIGN_OBJECT: Final = (
    "ForeignObject",
    ReasonKind.OPERATION,
    "An object has a name that the operator needs and belongs to another owner.",
    (
        "Delete or rename the object. After a restore, see [Backup and"
        " restore](../operations.md#backup-and-restore)."
    ),
)
STATE_CONFLICT: Final = (
    "StateConflict",
    ReasonKind.OPERATION,
    (
        "Two operators serve the same source. As an event: the operator lost one race, and read"
        " the state again."
    ),
    (
        "Enable leader election; give two installations different namespaces (`watchNamespaces` or"
        " `watchNamespaceSelector`)."
    ),
)
SPARK_OPERATOR_MISSING: Final = (
    "SparkOperatorMissing",
    ReasonKind.OPERATION,
    "The CRD of the Spark operator that `spec.application.provider` names is missing.",
    "Install that Spark operator, or change `spec.application.provider`.",
)
SERVICE_ACCOUNT_MISSING: Final = (
    "ServiceAccountMissing",
    ReasonKind.OPERATION,
    "The service account of the driver does not exist in the namespace.",
    "Create it, with what Spark needs to run executors.",
)
DRIVER_CANNOT_START: Final = (
    "DriverCannotStart",
    ReasonKind.OPERATION,
    (
        "A container of the driver pod cannot start, for example because its image is missing, or"
        " has not started for 5 minutes."
    ),
    "See the message: image, pull Secret or pod template. See the events of the pod, too.",
)
DRIVER_UNSCHEDULABLE: Final = (
    "DriverUnschedulable",
    ReasonKind.OPERATION,
    "No node has taken the driver pod for 30 seconds.",
    "Add nodes, or ask for less.",
)
SUBMISSION_FAILED: Final = (
    "SubmissionFailed",
    ReasonKind.OPERATION,
    "The Spark operator could not submit the application, and tries again.",
    "Correct `spec.application`, or what the message names.",
)
RESTART_LIMIT_REACHED: Final = (
    "RestartLimitReached",
    ReasonKind.OPERATION,
    "The application failed `spec.restart.maxFailures` times in a row, and stays with its log.",
    "Delete the application, or raise the limit.",
)
APPLICATION_ENDED: Final = (
    "ApplicationEnded",
    ReasonKind.OPERATION,
    "The application completed although its source is unbounded, or not read to its end.",
    "Let the program wait for the query. Then delete the application: a new one continues.",
)
APPLICATION_UNKNOWN: Final = (
    "ApplicationUnknown",
    ReasonKind.OPERATION,
    (
        "The Spark operator does not know the state of the driver any more, or names a state that"
        " this release does not know."
    ),
    "Check the driver's node.",
)
_MEND_THE_CAUSE: Final = (
    "Mend the cause that the message names. OOMKilled: raise `memory` of"
    " `spec.application.driver` or `executor`, or `spark.driver.memoryOverhead` in `sparkConf`. An"
    " image: correct `spec.application.image`. An exception: correct the program or the option that"
    " it names. If no cause is named, read the log of the driver's pod."
)
APPLICATION_RESTARTING: Final = (
    "ApplicationRestarting",
    ReasonKind.OPERATION,
    (
        "The driver failed, and the Spark operator restarts it. The message has the cause, such"
        " as OOMKilled, or the sentence with which the packaged application ended. After two"
        " failures in a row it stays until the application has run for 10 minutes."
    ),
    _MEND_THE_CAUSE,
)
SOURCE_IN_USE: Final = (
    "SourceInUse",
    ReasonKind.OPERATION,
    ("The application failed because another query reads the source. It is not started meanwhile."),
    (
        "Stop the other query, or give it [a source of its"
        " own](../protocol.md#one-query-per-source)."
    ),
)
APPLICATION_FAILED: Final = (
    "ApplicationFailed",
    ReasonKind.OPERATION,
    (
        "The application failed. It is kept with its log for a while and then started again. The"
        " message has the sentence with which the packaged application ended. After two failures"
        " in a row it stays until an application has run for 10 minutes."
    ),
    _MEND_THE_CAUSE,
)
APPLICATION_STUCK: Final = (
    "ApplicationStuck",
    ReasonKind.OPERATION,
    "Nothing happened for 5 minutes. The application is created again.",
    "Check the Spark operator.",
)
ROLLED_BACK: Final = (
    "RolledBack",
    ReasonKind.OPERATION,
    (
        "The application was not healthy in time with new settings. The last healthy ones are"
        " in effect again."
    ),
    "Correct the spec, or change `spec.application.restart.nonce` to try again.",
)
APPLICATION_SUSPENDED: Final = (
    "ApplicationSuspended",
    ReasonKind.OPERATION,
    (
        "Another client, such as a queue of jobs, has set `spec.suspend` of the SparkApplication,"
        " so nothing is read."
    ),
    "Set it to `false`, or delete the SparkApplication: the operator creates a new one.",
)
OLD_APPLICATION_REMAINS: Final = (
    "OldApplicationRemains",
    ReasonKind.OPERATION,
    (
        "A SparkApplication or a driver pod of a former start has not gone for 5 minutes. No other"
        " driver starts before."
    ),
    (
        "See why the pod does not end. If its node does not answer, delete the pod by `kubectl"
        " delete pod --force` once the machine is off."
    ),
)
REPORT_TOO_NEW: Final = (
    "ReportTooNew",
    ReasonKind.OPERATION,
    (
        "A driver of a newer release reports in a version that the operator does not read, as if"
        " it did not report at all."
    ),
    "Upgrade the operator, or start the application with an image of the operator's release.",
)
HOST_LOST: Final = (
    "HostLost",
    ReasonKind.OPERATION,
    (
        "A host has not reported for `spec.application.hostLossPolicy.after`. The message says"
        " who reads its splits."
    ),
    "See the application and the driver's pod of that host.",
)
DRIVER_SILENT: Final = (
    "DriverSilent",
    ReasonKind.OPERATION,
    "No driver of the source reports, although an application runs. Its lag is unknown.",
    (
        "See the driver's log, and whether it reaches the API server. If it hangs, delete its pod:"
        " another one continues from the checkpoint."
    ),
)
READERS_MISSING: Final = (
    "ReadersMissing",
    ReasonKind.OPERATION,
    "Readers have not registered in time. Nothing is assigned to them until they do.",
    "See the log of the driver's pod.",
)
EXECUTORS_MISSING: Final = (
    "ExecutorsMissing",
    ReasonKind.OPERATION,
    "The driver has had no executor for two minutes, so nothing is read.",
    (
        "See the executors' pods (label `spark-role=executor`), and the quotas and nodes of the"
        " namespace."
    ),
)
QUERY_STALLED: Final = (
    "QueryStalled",
    ReasonKind.OPERATION,
    (
        "Spark has begun no micro-batch for five minutes, or for three times as long as is"
        " usual for one of its size:"
        " nothing new is read, although the driver reports."
    ),
    "See the driver's log. If it hangs, delete its pod: another one continues from the checkpoint.",
)
DISCOVERY_FAILED: Final = (
    "DiscoveryFailed",
    ReasonKind.OPERATION,
    "The splits of a part of the source, such as a cluster, could not be listed.",
    "See the message. The operator retries automatically, at least once a minute.",
)
OWNER_REFERENCE_MISSING: Final = (
    "OwnerReferenceMissing",
    ReasonKind.OPERATION,
    "A SparkApplication would outlive its source.",
    "Restore its owner reference, or delete it.",
)
APPLICATION_STATE_WRONG: Final = (
    "ApplicationStateWrong",
    ReasonKind.OPERATION,
    (
        "The SparkApplication is FAILED, or has been on its way to a state for 5 minutes, but its"
        " driver pod runs. The operator does not touch it."
    ),
    (
        "Check whether the driver still reads: `balanced-source status` shows its epoch and lag. To"
        " start a new driver, which continues from the Spark checkpoint, delete the"
        " SparkApplication."
    ),
)
HASH_COLLAPSES: Final = (
    "HashCollapses",
    ReasonKind.OPERATION,
    (
        "`parallelism` is a multiple of 31, where the strategy Hash puts nearly all splits on"
        " one reader."
    ),
    "Use RoundRobin, or another parallelism.",
)
PAUSED_BY_ANNOTATION: Final = (
    "PausedByAnnotation",
    ReasonKind.STATE,
    "An annotation keeps changes of the spec, except `suspend`, from taking effect.",
    'Remove the annotation `balancedsource.io/paused: "true"` to apply them.',
)
