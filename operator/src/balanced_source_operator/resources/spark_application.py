"""The SparkApplication of Kubeflow's operator.

Its CRD has no defaults of its own (they live in a webhook that may be absent), so every field is
set here; pod fields that only the webhook would apply are put into the templates. Nothing in it
depends on parallelism but the first number of executors: a change of parallelism must never edit a
running application.
"""

import copy
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from balanced_source.documents.pipeline import DEFAULT_CONNECTOR
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
from balanced_source_operator.resources.pod_templates import (
    NO_OPTIONS,
    driver_template,
    executor_template,
)
from balanced_source_operator.spec import Application

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
