"""The environment of a driver.

Variables that the operator sets in its pod, and that the driver reads.

Version 1 has no variable with a number, because release 0.1.0 set none; see `pipeline` for when a
new one is needed. Version 2 names the host, and is used for further hosts only: an older driver
would take them for host 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from balanced_source.documents import pipeline
from balanced_source.documents.pipeline import Pipeline, ProcessingTime
from balanced_source.documents.storage import FIRST_HOST
from balanced_source.durations import seconds
from balanced_source.errors import CorruptDocumentError, IncompatibleVersionError
from balanced_source.names import separated

VERSION: Final = 2
"""Newest version that `from_variables` reads."""

PREFIX: Final = "BALANCED_SOURCE_"

POD_NAME: Final = f"{PREFIX}POD_NAME"
POD_UID: Final = f"{PREFIX}POD_UID"
"""Which pod a driver runs in; Kubernetes fills these in."""

ZONE: Final = f"{PREFIX}ZONE"
"""Availability zone of the pod, in driver and executors.

Kubernetes fills it in where pods have the label of their node (1.35 and later); elsewhere it is
empty, which says nothing, or the user sets it.
"""

FORMER_ZONE: Final = f"{PREFIX}RACK"
"""The same by its name of release 0.1.0, whose executors read it.

What a user sets still counts there.
"""

_VERSION: Final = f"{PREFIX}ENVIRONMENT_VERSION"
_NAME: Final = f"{PREFIX}NAME"
_NAMESPACE: Final = f"{PREFIX}NAMESPACE"
_UID: Final = f"{PREFIX}UID"
_SECRETS_DIR: Final = f"{PREFIX}SECRETS_DIR"
_PIPELINE: Final = f"{PREFIX}PIPELINE"
_CONF_SECRETS: Final = f"{PREFIX}CONF_SECRETS"
HOST: Final = f"{PREFIX}HOST"
METRICS_PORT: Final = f"{PREFIX}METRICS_PORT"
"""Where a driver serves Prometheus metrics.

What a user sets still counts; 0 serves none. An older driver ignores it.
"""

DOCUMENTATION: Final = f"{PREFIX}DOCUMENTATION_URL"
"""Where a site with the documentation is, for links in messages.

What a user sets still counts. An older driver ignores it.
"""

RETAINED: Final = f"{PREFIX}RETAINED_BATCHES"
"""``spark.sql.streaming.minBatchesToRetain`` of the application, where it is set.

Spark does not tell a data source. An older driver ignores it.
"""

_MAX_PORT: Final = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverEnvironment:
    """What a driver is told when it starts.

    Attributes:
        name: of the BalancedSource.
        namespace: of the BalancedSource.
        uid: of the BalancedSource.
        secrets_dir: folder with one folder per Secret, with a file per key; None if none is
            mounted.
        pipeline: what the packaged application does; None for the user's own program.
        conf_secrets: names of Secrets whose keys are Spark settings; later ones win.
        host: which of the source's hosts the driver is.
        metrics_port: where it serves Prometheus metrics; 0: nowhere.
        retained_batches: micro-batches that Spark retains; 0: its default.
        documentation_url: of a site with the documentation; empty: that of the package.
    """

    name: str
    namespace: str
    uid: str
    secrets_dir: str | None = None
    pipeline: Pipeline | None = None
    conf_secrets: tuple[str, ...] = ()
    host: str = FIRST_HOST
    metrics_port: int = 0
    retained_batches: int = 0
    documentation_url: str = ""


def to_variables(environment: DriverEnvironment) -> dict[str, str]:
    """Return the variables; those that there is nothing to say by are left out."""
    found = {_NAME: environment.name, _NAMESPACE: environment.namespace, _UID: environment.uid}
    if environment.secrets_dir is not None:
        found[_SECRETS_DIR] = environment.secrets_dir
    if environment.pipeline is not None:
        found[_PIPELINE] = pipeline.encode(environment.pipeline)
    if environment.conf_secrets:
        found[_CONF_SECRETS] = ",".join(environment.conf_secrets)
    if environment.host != FIRST_HOST:
        found |= {_VERSION: "2", HOST: environment.host}
    if environment.metrics_port:
        found[METRICS_PORT] = str(environment.metrics_port)
    if environment.retained_batches:
        found[RETAINED] = str(environment.retained_batches)
    if environment.documentation_url:
        found[DOCUMENTATION] = environment.documentation_url
    return found


def from_variables(variables: Mapping[str, str]) -> DriverEnvironment:
    """Return what any version said, among all variables of a process.

    Raises:
        IncompatibleVersionError: a newer operator set them.
        CorruptDocumentError: a variable is missing or malformed.
    """
    if (version := variables.get(_VERSION, "1")) not in ("1", "2"):
        raise IncompatibleVersionError(
            "the driver's environment", found=_number(version), supported=VERSION
        )
    if missing := [name for name in (_NAME, _NAMESPACE, _UID) if not variables.get(name)]:
        raise CorruptDocumentError(f"{missing[0]} is missing in the environment")
    text = variables.get(_PIPELINE)
    return DriverEnvironment(
        name=variables[_NAME],
        namespace=variables[_NAMESPACE],
        uid=variables[_UID],
        secrets_dir=variables.get(_SECRETS_DIR) or None,
        pipeline=None if text is None else _pipeline(text),
        conf_secrets=separated(variables.get(_CONF_SECRETS, "")),
        host=variables.get(HOST) or FIRST_HOST,
        metrics_port=port_of(variables),
        retained_batches=retained_of(variables),
        documentation_url=variables.get(DOCUMENTATION, ""),
    )


def port_of(variables: Mapping[str, str]) -> int:
    """Return the port of the metrics; 0 for none.

    Raises:
        CorruptDocumentError: it is not a port.
    """
    text = variables.get(METRICS_PORT) or "0"
    if not (text.isascii() and text.isdigit() and int(text) <= _MAX_PORT):
        raise CorruptDocumentError(
            f"{METRICS_PORT} is {text!r}, and not a port from 0 to {_MAX_PORT}"
        )
    return int(text)


def retained_of(variables: Mapping[str, str]) -> int:
    """Return how many micro-batches Spark retains; 0 if nothing is known.

    Raises:
        CorruptDocumentError: it is not a number.
    """
    text = variables.get(RETAINED) or "0"
    if not (text.isascii() and text.isdigit()):
        raise CorruptDocumentError(f"{RETAINED} is {text!r}, and not a whole number")
    return int(text)


def interval_of(variables: Mapping[str, str]) -> float:
    """Return the seconds between the begins of two micro-batches.

    0 if none waits for the next one, or nothing is known, as of a program of the user's own.

    Raises:
        CorruptDocumentError: the pipeline is malformed.
    """
    text = variables.get(_PIPELINE)
    trigger = None if text is None else _pipeline(text).trigger
    return seconds(trigger.interval) if isinstance(trigger, ProcessingTime) else 0.0


def _pipeline(text: str) -> Pipeline:
    try:
        return pipeline.decode(text)
    except CorruptDocumentError as error:
        raise CorruptDocumentError(f"{_PIPELINE}: {error}") from error


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise CorruptDocumentError(f"{_VERSION} is {text!r}, not a number") from error
