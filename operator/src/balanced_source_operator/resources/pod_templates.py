"""The pod templates of driver and executors: the user's, with what this project needs in them.

What only the webhook of a Spark operator would apply is in them, too: it may be absent.
"""

import copy
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from balanced_source.documents import environment
from balanced_source.documents.environment import DriverEnvironment, to_variables
from balanced_source.documents.pipeline import (
    DEFAULT_CONNECTOR,
    AvailableNow,
    EventTimeAlignment,
    Pipeline,
    ProcessingTime,
    Sink,
    Trigger,
)
from balanced_source.errors import InvalidSpecError
from balanced_source.names import MAX_LABEL
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.spec import Application
from balanced_source_operator.spec import application as spec
from balanced_source_operator.spec.application import PACKAGED_APPLICATION
from balanced_source_operator.spec.secret_sources import SecretSource

SECRETS_DIR: Final = "/etc/balanced-source/secrets"
"""Where Secrets are mounted in driver and executors, a folder for each."""

NO_OPTIONS: Final[Mapping[str, str]] = MappingProxyType({})

DRIVER_CONTAINER: Final = "spark-kubernetes-driver"

EXECUTOR_CONTAINER: Final = "spark-kubernetes-executor"

_ZONE: Final = {"fieldRef": {"fieldPath": "metadata.labels['topology.kubernetes.io/zone']"}}
"""Kubernetes copies this label of the node to the pod when it binds it (1.35 and later, or 1.33
with the feature gate PodTopologyLabelsAdmission). A label that is missing makes an empty variable,
which says nothing."""

DRIVER_ZONE: Final[Sequence[Mapping[str, Any]]] = ({"name": environment.ZONE, "valueFrom": _ZONE},)
"""A driver says with its requests for splits where it is."""

EXECUTOR_ZONE: Final[Sequence[Mapping[str, Any]]] = (
    *DRIVER_ZONE,
    {"name": environment.FORMER_ZONE, "valueFrom": _ZONE},
)
"""Executors may fetch from replicas in their zone."""

_OVERRIDABLE: Final = frozenset(
    {environment.ZONE, environment.FORMER_ZONE, environment.METRICS_PORT}
)
"""Variables that keep the value of the user's template."""

POD_IDENTITY: Final[Sequence[Mapping[str, Any]]] = (
    {"name": environment.POD_NAME, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    {"name": environment.POD_UID, "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
)
"""By these a driver tells its successor which pod it ran in: one whose pod is gone need not fall
silent first."""

RETAINED_BATCHES: Final = "spark.sql.streaming.minBatchesToRetain"

METRICS_PORT_NAME: Final = "bsrc-metrics"
"""Name of the driver's port of Prometheus metrics. Users may have a port `metrics` of their own."""

_VOLUME: Final = "bsrc-secret-"

_HASHED_VOLUME: Final = "bsrc-sha-"
"""Prefixes of the volumes of Secrets; two, so that no plain name can be that of a hashed one."""


def driver_template(
    source: Identity,
    application: Application,
    secrets: tuple[str, ...],
    connector: str,
    options: Mapping[str, str],
    *,
    metrics_port: int = 0,
    documentation_url: str = "",
    conf: Mapping[str, str],
) -> dict[str, Any]:
    """The pod template of the driver; arguments as those of `spark_application`."""
    described = replace(
        driver_environment(source, application, connector, options),
        metrics_port=metrics_port,
        documentation_url=documentation_url,
        retained_batches=_retained({**conf, **application.spark_conf}),
    )
    mounted = tuple(dict.fromkeys((*secrets, *_own_secrets(application))))
    environment = [*_variables(to_variables(described)), *POD_IDENTITY, *DRIVER_ZONE]
    template = _template(application.driver.template, DRIVER_CONTAINER, environment, mounted)
    # Else nothing would say why a program fails that does not write a termination log.
    _spark_container(template).setdefault("terminationMessagePolicy", "FallbackToLogsOnError")
    if metrics_port:
        _add_port(template, metrics_port)
    return template


def _retained(conf: Mapping[str, str]) -> int:
    """Return how many micro-batches Spark retains; 0 if it is not set, or Spark refuses it."""
    text = conf.get(RETAINED_BATCHES, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def _add_port(template: dict[str, Any], number: int) -> None:
    """Name the port of the metrics, which a PodMonitor finds by its name.

    A user who has chosen another port by the variable names it in the template too.
    """
    ports = _spark_container(template).setdefault("ports", [])
    taken = {(port.get("name"), port.get("containerPort")) for port in ports}
    if not any(name == METRICS_PORT_NAME or port == number for name, port in taken):
        ports.append({"name": METRICS_PORT_NAME, "containerPort": number, "protocol": "TCP"})


def _spark_container(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return the container of the driver itself, which a made template has."""
    containers: list[dict[str, Any]] = template["spec"]["containers"]
    return next(c for c in containers if c.get("name") == DRIVER_CONTAINER)


def driver_environment(
    source: Identity,
    application: Application,
    connector: str = DEFAULT_CONNECTOR,
    options: Mapping[str, str] = NO_OPTIONS,
) -> DriverEnvironment:
    """What the driver is told when it starts; only the packaged application gets a pipeline."""
    wanted = (
        application.pipeline if application.main_application_file == PACKAGED_APPLICATION else None
    )
    spares = application.executor.warm_spares
    pipeline = None if wanted is None else _pipeline(wanted, connector, options, warm_spares=spares)
    return DriverEnvironment(
        name=source.name,
        namespace=source.namespace,
        uid=source.uid,
        secrets_dir=SECRETS_DIR,
        pipeline=pipeline,
        conf_secrets=_names(application.spark_conf_from) if pipeline is not None else (),
        host=source.host,
    )


def _pipeline(
    wanted: spec.PipelineSpec, connector: str, options: Mapping[str, str], *, warm_spares: int
) -> Pipeline:
    sink, alignment = wanted.sink, wanted.alignment
    return Pipeline(
        checkpoint_location=wanted.checkpoint_location,
        sink=Sink(
            format=sink.format,
            options=sink.options,
            secrets=_names(sink.options_from),
            partition_by=tuple(sink.partition_by),
        ),
        trigger=_trigger(wanted.trigger),
        transform=wanted.transform,
        columns=tuple(wanted.columns) if wanted.columns is not None else None,
        max_records_per_reader=wanted.max_records_per_reader,
        executor_patience=wanted.executor_patience,
        warm_spares=warm_spares,
        accept_checkpoint_of=wanted.accept_checkpoint_of,
        connector=connector,
        options=options,
        alignment=None
        if alignment is None
        else EventTimeAlignment(
            max_drift=alignment.max_drift,
            idle_timeout=alignment.idle_timeout,
            group=alignment.group,
        ),
    )


def _trigger(wanted: spec.Trigger) -> Trigger:
    if wanted.available_now:
        return AvailableNow()
    if wanted.processing_time is None:
        raise InvalidSpecError(
            "set either processingTime, or availableNow: true",
            field="spec.application.pipeline.trigger",
        )
    return ProcessingTime(wanted.processing_time)


def _own_secrets(application: Application) -> tuple[str, ...]:
    """Secrets that the packaged application reads; only the driver needs them."""
    sink = application.pipeline.sink.options_from if application.pipeline is not None else []
    return _names((*sink, *application.spark_conf_from))


def _names(sources: Iterable[SecretSource]) -> tuple[str, ...]:
    return tuple(source.secret_ref.name for source in sources)


def _volume(secret: str) -> str:
    """Name of a Secret's volume: a DNS label, different for each Secret.

    Names of Secrets may have dots and 253 characters, those of volumes have neither: such names get
    a hash.
    """
    if "." not in secret and len(secret) <= MAX_LABEL - len(_VOLUME):
        return f"{_VOLUME}{secret}"
    suffix = hashlib.sha256(secret.encode()).hexdigest()[:16]
    head = secret.replace(".", "-")[: MAX_LABEL - len(_HASHED_VOLUME) - len(suffix) - 1]
    return f"{_HASHED_VOLUME}{head}-{suffix}"


def executor_template(application: Application, secrets: tuple[str, ...]) -> dict[str, Any]:
    """The pod template of the executors."""
    return _template(application.executor.template, EXECUTOR_CONTAINER, EXECUTOR_ZONE, secrets)


def _variables(values: Mapping[str, str]) -> list[Mapping[str, Any]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _template(
    given: Mapping[str, Any] | None,
    container: str,
    environment: Sequence[Mapping[str, Any]],
    secrets: tuple[str, ...],
) -> dict[str, Any]:
    """The user's template with what we need in Spark's container; what the user set stays."""
    # A copy: the template is a part of the spec in effect, which must stay as it is.
    template: dict[str, Any] = copy.deepcopy(dict(given or {}))
    spec = template.setdefault("spec", {})
    containers = spec.setdefault("containers", [])
    # By name: Spark looks for its own container under this name, and a user may have others.
    ours = next((c for c in containers if c.get("name") == container), None)
    if ours is None:
        ours = {"name": container}
        containers.insert(0, ours)
    env = ours.setdefault("env", [])
    chosen = {variable.get("name") for variable in env}
    kept = _OVERRIDABLE & chosen
    # Ours come last: of two variables of one name Kubernetes takes the last one.
    env.extend(copy.deepcopy(dict(v)) for v in environment if v["name"] not in kept)
    for secret in secrets:
        volume = _volume(secret)
        # Optional: a Secret that is not there keeps its cluster from being read, not the pods from
        # starting.
        reference = {"secretName": secret, "optional": True}
        spec.setdefault("volumes", []).append({"name": volume, "secret": reference})
        mount = {"name": volume, "mountPath": f"{SECRETS_DIR}/{secret}", "readOnly": True}
        ours.setdefault("volumeMounts", []).append(mount)
    return template
