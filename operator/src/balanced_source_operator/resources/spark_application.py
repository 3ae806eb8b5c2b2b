"""The SparkApplication of Kubeflow's operator.

Its CRD has no defaults of its own (they live in a webhook that may be absent), so every field is
set here; pod fields that only the webhook would apply are put into the templates. Nothing in it
depends on parallelism but the first number of executors: a change of parallelism must never edit a
running application.
"""

import copy
import hashlib
import json
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
from balanced_source_operator.resources.kinds import (
    FAILURES_ANNOTATION,
    HASH_ANNOTATION,
    KUBEFLOW_APPLICATION,
    NONCE_ANNOTATION,
    SECRETS_ANNOTATION,
    SETTINGS_ANNOTATION,
)
from balanced_source_operator.resources.made_from import (
    NOT_COMPARED,
    annotation_text,
    effective_conf,
    settings_of,
)
from balanced_source_operator.spec import Application
from balanced_source_operator.spec import application as spec
from balanced_source_operator.spec.application import PACKAGED_APPLICATION
from balanced_source_operator.spec.secret_sources import SecretSource

SECRETS_DIR: Final = "/etc/balanced-source/secrets"
"""Where Secrets are mounted in driver and executors, a folder for each."""

NO_OPTIONS: Final[Mapping[str, str]] = MappingProxyType({})

DRIVER_CONTAINER: Final = "spark-kubernetes-driver"
EXECUTOR_CONTAINER: Final = "spark-kubernetes-executor"

DEFAULT_CONF: Final[Mapping[str, str]] = {
    # Python workers talk to the JVM by Unix sockets: two to four times less overhead per task than
    # by TCP.
    "spark.python.unix.domain.socket.enabled": "true",
    # Executors reach the driver by its address: no headless service, no cluster DNS needed.
    "spark.kubernetes.executor.useDriverPodIP": "true",
    # Else the driver makes a ConfigMap for its executors, and a right to that is one to all
    # ConfigMaps.
    "spark.kubernetes.executor.disableConfigMap": "true",
    # Spark 4.2 creates a NetworkPolicy at submission, which the role of Kubeflow's chart does not
    # allow.
    "spark.kubernetes.driver.pod.excludedFeatureSteps": (
        "org.apache.spark.deploy.k8s.features.NetworkPolicyFeatureStep"
    ),
}

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

RETRY_SECONDS: Final = 10
"""Seconds until a Spark operator starts a driver again."""

RETRIES: Final = 5
"""Times that a Spark operator tries again what ends by itself, or a drain attempt."""

UNLIMITED: Final = 2**31 - 1
"""Times that it starts the driver of a stream again: each time is sooner than another application.
"""


def spark_application(
    source: Identity,
    application: Application,
    *,
    name: str,
    parallelism: int,
    secrets: tuple[str, ...],
    conf: Mapping[str, str],
    max_failures: int | None = None,
    failures: int = 0,
    connector: str = DEFAULT_CONNECTOR,
    options: Mapping[str, str] = NO_OPTIONS,
    is_bounded: bool = False,
    metrics_port: int = 0,
    documentation_url: str = "",
) -> dict[str, Any]:
    """The manifest.

    Args:
        source: owner.
        application: what the user wants.
        name: of the SparkApplication.
        parallelism: number of readers at the start.
        secrets: names of Secrets to mount.
        conf: Spark configuration of the operator's settings; the user's wins.
        max_failures: failures after which it is not started again; None for no limit.
        failures: how many times in a row the applications before it have failed.
        connector: kind of the source.
        options: what the packaged application must know of the source before it starts.
        is_bounded: whether the source ends, and the application with it.
        metrics_port: where the driver serves Prometheus metrics; 0: nowhere.
        documentation_url: of a site with the documentation; empty: that of the package.
    """
    policy = _restart_policy(max_failures, ends=is_bounded or ends_by_itself(application))
    template = driver_template(
        source,
        application,
        secrets,
        connector,
        options,
        metrics_port=metrics_port,
        documentation_url=documentation_url,
        conf=conf,
    )
    spec: dict[str, Any] = {
        **_program(application),
        "restartPolicy": policy,
        "sparkConf": {**DEFAULT_CONF, **conf, **application.spark_conf},
        "driver": _driver(source, application, template),
        "executor": _executor(source, application, secrets, parallelism),
    }
    annotations = application_annotations(
        source, application, secrets=secrets, conf=conf, failures=failures
    )
    return {
        "apiVersion": KUBEFLOW_APPLICATION.api_version,
        "kind": KUBEFLOW_APPLICATION.kind,
        "metadata": source.metadata(name, annotations=annotations),
        "spec": spec,
    }


def _program(application: Application) -> dict[str, Any]:
    """Return what runs, and by which image."""
    program: dict[str, Any] = {
        "type": "Python",
        "mode": "cluster",
        "pythonVersion": "3",
        "sparkVersion": application.spark_version,
        "image": application.image,
        "imagePullPolicy": application.image_pull_policy.value,
        "mainApplicationFile": application.main_application_file,
        "arguments": list(application.arguments),
    }
    if application.image_pull_secrets:
        program["imagePullSecrets"] = list(application.image_pull_secrets)
    return program


def _driver(
    source: Identity, application: Application, template: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "cores": application.driver.cores,
        "memory": application.driver.memory,
        # As a field, not as a Spark setting: newer webhooks of Kubeflow reject that setting.
        "serviceAccount": application.service_account,
        "labels": source.pod_labels,
        "template": template,
    }


def drained(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a lost application for one executor, without a limit of failures."""
    after = copy.deepcopy(dict(spec))
    after["executor"] = {**after.get("executor", {}), "instances": 1}
    # One with settings that do not work must fail, so that the next one has others.
    after["restartPolicy"] = _restart_policy(None, ends=True)
    return after


def service_account(spec: Mapping[str, Any]) -> str:
    """Return the service account of the driver; empty if the spec names none."""
    return str((spec.get("driver") or {}).get("serviceAccount") or "")


def application_annotations(
    source: Identity,
    application: Application,
    *,
    secrets: tuple[str, ...],
    conf: Mapping[str, str],
    failures: int,
) -> dict[str, str]:
    """What the operator must know of an application that it finds.

    Arguments as those of `spark_application`.
    """
    settings = settings_of(application, conf=conf, uid=source.uid)
    text, nonce = annotation_text(settings), application.restart.nonce
    return {
        HASH_ANNOTATION: application_hash(source, application, conf=conf),
        SECRETS_ANNOTATION: ",".join(secrets),
        FAILURES_ANNOTATION: str(failures),
        **({SETTINGS_ANNOTATION: text} if text else {}),
        **({NONCE_ANNOTATION: str(nonce)} if nonce is not None else {}),
    }


def application_hash(source: Identity, application: Application, *, conf: Mapping[str, str]) -> str:
    """Returns the hash of an application's settings in all versions, the present one first.

    It changes when the application must be rebuilt, whatever it is like now. Parallelism is no
    part of it. Neither are Secrets: only one that is not mounted yet needs another application. Nor
    is what has its default: a newer operator that knows a field more restarts nothing. Of `conf`
    only what the application does not set itself counts; release 0.1.0, whose hashes have no
    prefix, counted all of it. See `controller.application` for the comparison.
    """
    effective = effective_conf(application, conf)
    return f"2-{_digest(source, application, effective)},{_digest(source, application, conf)}"


def _digest(source: Identity, application: Application, conf: Mapping[str, str]) -> str:
    content = {
        "uid": source.uid,
        "application": application.model_dump(
            mode="json", exclude_defaults=True, exclude=NOT_COMPARED
        ),
        "conf": dict(conf),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def executors(parallelism: int, application: Application) -> int:
    """Number of executors that give every reader a task slot, with the spares."""
    return -(-parallelism // application.executor.cores) + application.executor.warm_spares


def ends_by_itself(application: Application) -> bool:
    """Return whether the pipeline ends when everything that is there has been read."""
    return application.pipeline is not None and bool(application.pipeline.trigger.available_now)


def _restart_policy(max_failures: int | None, *, ends: bool) -> dict[str, Any]:
    """The Spark operator's part of restarts.

    With a limit it gives up, and the operator sees a failed application. Type Always would also
    start a program again that has ended in order, at once and without end. All that has a default
    is set: Kubeflow's defaults are in a webhook, which may be absent.
    """
    attempts = retries(max_failures, ends=ends)
    return {
        "type": "OnFailure",
        "onSubmissionFailureRetries": attempts if attempts == UNLIMITED else RETRIES,
        # Without an interval Kubeflow's operator ends the retry with an error.
        "onSubmissionFailureRetryInterval": RETRY_SECONDS,
        "onFailureRetries": attempts,
        "onFailureRetryInterval": RETRY_SECONDS,
    }


def retries(max_failures: int | None, *, ends: bool) -> int:
    """Return how often a Spark operator starts a failed driver again.

    Args:
        max_failures: failures after which it is not started again; None for no limit.
        ends: whether the program ends by itself.
    """
    if max_failures is not None:
        return max(0, max_failures - 1)
    return RETRIES if ends else UNLIMITED


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
    ours = next(c for c in template["spec"]["containers"] if c.get("name") == DRIVER_CONTAINER)
    ports = ours.setdefault("ports", [])
    taken = {(port.get("name"), port.get("containerPort")) for port in ports}
    if not any(name == METRICS_PORT_NAME or port == number for name, port in taken):
        ports.append({"name": METRICS_PORT_NAME, "containerPort": number, "protocol": "TCP"})


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


def _executor(
    source: Identity, application: Application, secrets: tuple[str, ...], parallelism: int
) -> dict[str, Any]:
    return {
        "cores": application.executor.cores,
        "memory": application.executor.memory,
        "instances": executors(parallelism, application),
        "labels": source.pod_labels,
        "template": executor_template(application, secrets),
    }


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
