"""What the manifest of a SparkApplication tells: state, age, failures, and its origin."""

import enum
from datetime import datetime
from typing import Any, Final

from balanced_source_operator.kube.port import Manifest
from balanced_source_operator.resources.kinds import (
    FAILURES_ANNOTATION,
)


class ApplicationState(enum.StrEnum):
    """What both Spark operators' states come down to."""

    NONE = ""
    PENDING = "Pending"
    RUNNING = "Running"
    DEGRADED = "Degraded"
    STOPPING = "Stopping"
    PAUSED = "Paused"
    FINISHED = "Finished"
    FAILED = "Failed"


KUBEFLOW_STATES: Final = {
    "": ApplicationState.PENDING,
    "SUBMITTED": ApplicationState.PENDING,
    "SUBMISSION_FAILED": ApplicationState.PENDING,
    "PENDING_RERUN": ApplicationState.PENDING,
    "RESUMING": ApplicationState.PENDING,
    "RUNNING": ApplicationState.RUNNING,
    "UNKNOWN": ApplicationState.DEGRADED,
    "SUCCEEDING": ApplicationState.STOPPING,
    "FAILING": ApplicationState.STOPPING,
    "INVALIDATING": ApplicationState.STOPPING,
    "SUSPENDING": ApplicationState.STOPPING,
    "SUSPENDED": ApplicationState.PAUSED,
    "COMPLETED": ApplicationState.FINISHED,
    "FAILED": ApplicationState.FAILED,
}
"""Kubeflow's states; SUBMISSION_FAILED is retried by its operator before it becomes FAILED."""


FAILED_ATTEMPT: Final = frozenset({"FAILING", "PENDING_RERUN"})
"""Kubeflow's states of an application whose driver has run and failed, before the next attempt."""

RETRIED: Final = FAILED_ATTEMPT | {"SUBMISSION_FAILED"}
"""Kubeflow's states of an application that its operator starts again after a pause."""

STABLE_AFTER: Final = 600.0
"""Seconds after which an application that fails counts as one that ran."""


def failures_of(application: Manifest) -> int:
    """Return how many times in a row applications have failed, including this failure.

    One that ran for a while before it failed begins a new row.
    """
    status = application.get("status", {})
    started, ended = status.get("lastSubmissionAttemptTime"), status.get("terminationTime")
    if started and ended and timestamp(ended) - timestamp(started) >= STABLE_AFTER:
        return 1
    return failures_before(application) + attempts_of(application)


def attempts_of(application: Manifest) -> int:
    """Return how many times a Spark operator has started an application, at least once."""
    return max(1, int(application.get("status", {}).get("executionAttempts") or 1))


def is_young(application: Manifest, now: float) -> bool:
    """Return whether its driver was submitted less than `STABLE_AFTER` ago.

    False if its status does not say when.
    """
    submitted = application.get("status", {}).get("lastSubmissionAttemptTime")
    return bool(submitted) and now - timestamp(submitted) < STABLE_AFTER


def failures_before(application: Manifest) -> int:
    """Return how many times in a row those before an application have failed."""
    before = annotation(application, FAILURES_ANNOTATION)
    return int(before) if before.isdigit() else 0


def is_made_from(made: str, wanted: str) -> bool:
    """Return whether hashes of settings are equal in the newest version that both know.

    Args:
        made: all versions of the hash that an application was made with, the newest first, with
            commas between.
        wanted: those of the settings that it should have.
    """
    known = {_version(text): text for text in wanted.split(",")}
    common = next((text for text in made.split(",") if _version(text) in known), None)
    return common is not None and known[_version(common)] == common


def _version(text: str) -> str:
    """Version of a hash; that of release 0.1.0 has none."""
    return text.rpartition("-")[0]


def annotation(application: Manifest, name: str) -> str:
    """Return an annotation; empty if it is missing."""
    return str((application["metadata"].get("annotations") or {}).get(name, ""))


def sighting(application: Manifest) -> tuple[str, str]:
    """Return the uid, and the word of the Spark operator for the state."""
    state = application.get("status", {}).get("applicationState", {}).get("state", "")
    return str(application["metadata"].get("uid", "")), str(state)


def word_of(application: Manifest) -> str:
    """Return the word of the Spark operator for the state; "new" if it has none yet."""
    return str(application.get("status", {}).get("applicationState", {}).get("state") or "new")


def state_of(application: Manifest) -> ApplicationState:
    """Return the state that its status names; DEGRADED if the word is unknown."""
    word = application.get("status", {}).get("applicationState", {}).get("state", "")
    return KUBEFLOW_STATES.get(word, ApplicationState.DEGRADED)


def seconds_since(application: Manifest, now: float) -> float:
    """Minus the seconds since something last happened to it, as far as its status tells."""
    status = application.get("status", {})
    stamps = [
        application["metadata"].get("creationTimestamp"),
        status.get("lastSubmissionAttemptTime"),
        status.get("terminationTime"),
    ]
    return max((timestamp(stamp) for stamp in stamps if stamp), default=now) - now


def timestamp(text: Any) -> float:
    """Return the seconds since the epoch; 0 if the text is no time."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0


def name_of(manifest: Manifest) -> str:
    """Return the name of an object."""
    return str(manifest["metadata"]["name"])


def number_of(application: Manifest, base: str) -> int:
    """Return the number behind the base of its name; 0 if there is none."""
    suffix = name_of(application).removeprefix(f"{base}-")
    return int(suffix) if suffix.isdigit() else 0
