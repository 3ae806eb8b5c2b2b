"""Reasons of conditions and events: stable words for programs, alerts and runbooks."""

import enum
from typing import Final


class Reason(enum.StrEnum):
    """Reasons that the operator itself gives. Connectors and drivers add their own, such as ``UnknownTopic``.

    The order of the reasons for problems is their severity: the worst problem heads the condition Degraded.
    """

    INTERNAL_ERROR = "InternalError"
    STATE_CORRUPT = "StateCorrupt"
    INVALID_SPEC = "InvalidSpec"
    PERMISSION_MISSING = "PermissionMissing"
    QUOTA_EXCEEDED = "QuotaExceeded"
    ADMISSION_DENIED = "AdmissionDenied"
    OBJECT_INVALID = "ObjectInvalid"
    API_SERVER_REFUSED = "ApiServerRefused"
    FOREIGN_OBJECT = "ForeignObject"
    STATE_CONFLICT = "StateConflict"
    SPARK_OPERATOR_MISSING = "SparkOperatorMissing"
    SERVICE_ACCOUNT_MISSING = "ServiceAccountMissing"
    DRIVER_CANNOT_START = "DriverCannotStart"
    DRIVER_UNSCHEDULABLE = "DriverUnschedulable"
    SUBMISSION_FAILED = "SubmissionFailed"
    RESTART_LIMIT_REACHED = "RestartLimitReached"
    APPLICATION_ENDED = "ApplicationEnded"
    APPLICATION_UNKNOWN = "ApplicationUnknown"
    APPLICATION_RESTARTING = "ApplicationRestarting"
    SOURCE_IN_USE = "SourceInUse"
    APPLICATION_FAILED = "ApplicationFailed"
    APPLICATION_STUCK = "ApplicationStuck"
    READERS_MISSING = "ReadersMissing"
    DISCOVERY_FAILED = "DiscoveryFailed"
    OWNER_REFERENCE_MISSING = "OwnerReferenceMissing"
    APPLICATION_STATE_WRONG = "ApplicationStateWrong"
    HASH_COLLAPSES = "HashCollapses"

    OFFSETS_SKIPPED = "OffsetsSkipped"

    AS_EXPECTED = "AsExpected"
    STABLE = "Stable"
    READING = "Reading"
    FINISHED = "Finished"
    SUSPENDED = "Suspended"
    NOT_READING = "NotReading"
    DISCOVERING = "Discovering"
    RECOVERING = "Recovering"
    WAITING_FOR_READERS = "WaitingForReaders"
    ADOPTING = "Adopting"


_SEVERITY: Final = {reason.value: number for number, reason in enumerate(Reason)}
_OF_OTHERS: Final = _SEVERITY[Reason.DISCOVERY_FAILED.value]


def severity(reason: str) -> int:
    """Return the rank of a problem's reason; the worst has the lowest. Unknown ones rank with failed discovery."""
    return _SEVERITY.get(reason, _OF_OTHERS)
