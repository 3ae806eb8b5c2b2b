"""What the doctor says."""

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from balanced_source.reason_kinds import loaded_reasons
from balanced_source_operator.kube.port import KubernetesApi, Manifest


class Level(enum.StrEnum):
    """How bad it is."""

    OK = "ok"
    UNKNOWN = "unknown"
    ERROR = "error"


class Fault(enum.StrEnum):
    """What is wrong.

    Stable words for programs, the same as reasons of conditions where there is such a reason.
    """

    API_SERVER_UNREACHABLE = "ApiServerUnreachable"
    CRD_MISSING = "CrdMissing"
    CRD_OUTDATED = "CrdOutdated"
    SPARK_OPERATOR_MISSING = "SparkOperatorMissing"
    SPARK_OPERATOR_SILENT = "SparkOperatorSilent"
    SPARK_OPERATOR_OUTDATED = "SparkOperatorOutdated"
    OPERATOR_SILENT = "OperatorSilent"
    OPERATOR_UNAVAILABLE = "OperatorUnavailable"
    NAMESPACE_NOT_SERVED = "NamespaceNotServed"
    RIGHT_MISSING = "PermissionMissing"
    SOURCE_MISSING = "SourceMissing"
    SPEC_INVALID = "InvalidSpec"
    SERVICE_ACCOUNT_MISSING = "ServiceAccountMissing"
    SECRET_MISSING = "SecretNotFound"  # noqa: S105 - a word, not a secret
    CONFIG_MAP_MISSING = "ConfigMapMissing"
    VOLUME_CLAIM_MISSING = "VolumeClaimMissing"
    VOLUME_CLAIM_LOST = "VolumeClaimLost"
    DRIVER_MISSING = "DriverMissing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The result of one check.

    Attributes:
        check: what was looked at, in a few words.
        subject: the object or cluster that was looked at, as messages name it; empty if the check
            is about the source as a whole.
        level: how bad it is.
        fault: what is wrong: a `Fault`, or the reason of a condition; empty if nothing is.
        message: what happened to which object; empty if nothing did.
        remedy: what to do.
    """

    check: str
    subject: str = ""
    level: Level = Level.OK
    fault: str = ""
    message: str = ""
    remedy: str = ""


class ClusterApi(KubernetesApi, Protocol):
    """An API server that also answers requests about itself."""

    async def ask(self, method: str, path: str, *, body: Manifest | None = None) -> Manifest:
        """Send any request.

        Raises:
            KubernetesError: the API server refused, or does not answer.
        """
        ...


def error(check: str, fault: str, message: str, remedy: str, *, subject: str = "") -> Diagnosis:
    """Return the diagnosis of a fault."""
    return Diagnosis(
        check=check,
        subject=subject,
        level=Level.ERROR,
        fault=fault,
        message=message,
        remedy=remedy,
    )


def unknown(check: str, message: str) -> Diagnosis:
    """Return the diagnosis of something that could not be checked."""
    return Diagnosis(check=check, level=Level.UNKNOWN, message=message)


def repeats(later: Diagnosis, conditions: Iterable[Diagnosis]) -> bool:
    """Return whether a check found what a condition of the source has said already."""
    return any(
        later.level is Level.ERROR
        and later.fault == condition.fault
        and (not later.subject or _names(condition.message, later.subject))
        for condition in conditions
    )


def _names(message: str, subject: str) -> bool:
    """Whether a message has a name as a whole: `kafka` is not `kafka-2`."""
    return re.search(rf"(?<![\w./-]){re.escape(subject)}(?![\w/-]|\.\w)", message) is not None


def remedy_of(reason: str) -> str:
    """Return the remedy of a condition's reason; empty for a word of no loaded connector."""
    return next((known.remedy for known in loaded_reasons() if known == reason), "")


_MARKS: Final = {Level.OK: "ok     ", Level.UNKNOWN: "unknown", Level.ERROR: "ERROR  "}


def as_text(diagnosis: Diagnosis) -> str:
    """Return a line for the check; further ones for a fault and its remedy."""
    fault = f": {diagnosis.fault}" if diagnosis.fault else ""
    lines = [f"{_MARKS[diagnosis.level]}  {diagnosis.check}{fault}"]
    lines += [
        f"         {text}"
        for text in (diagnosis.message, diagnosis.remedy and f"→ {diagnosis.remedy}")
        if text
    ]
    return "\n".join(lines)
