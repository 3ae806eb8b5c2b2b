"""The SparkApplication of Apache's operator (`spark.apache.org/v1`, release 1.0.0).

It submits through Spark's own Kubernetes code, so most of what is a field at Kubeflow is a Spark
setting here. Without restart settings it starts a driver once and never again: a stream would end
with its first failure.
"""

import copy
from collections.abc import Mapping
from typing import Any, Final

from balanced_source.documents.pipeline import DEFAULT_CONNECTOR
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import APACHE_APPLICATION
from balanced_source_operator.resources.pod_templates import (
    DRIVER_CONTAINER,
    EXECUTOR_CONTAINER,
    NO_OPTIONS,
    driver_template,
    executor_template,
)
from balanced_source_operator.resources.spark_application import (
    DEFAULT_CONF,
    RETRY_SECONDS,
    application_annotations,
    ends_by_itself,
    executors,
    retries,
)
from balanced_source_operator.spec import Application

PYTHON_RUNNER: Final = "org.apache.spark.deploy.PythonRunner"
"""Main class of every PySpark program; the first of `pyFiles` is then the program."""

RUN_LONG_ENOUGH: Final = 600.0
"""Seconds after which an attempt that fails begins a new row of failures."""

_ROLES: Final = ("driver", "executor")
_ACCOUNT: Final = "spark.kubernetes.authenticate.driver.serviceAccountName"


def apache_application(
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
    """The manifest; arguments as those of `spark_application`."""
    ends = is_bounded or ends_by_itself(application)
    spec: dict[str, Any] = {
        "mainClass": PYTHON_RUNNER,
        "pyFiles": application.main_application_file,
        "driverArgs": list(application.arguments),
        "deploymentMode": "ClusterMode",
        "runtimeVersions": {"sparkVersion": application.spark_version},
        "sparkConf": {
            **DEFAULT_CONF,
            **conf,
            **application.spark_conf,
            **_settings(source, application, parallelism),
        },
        "driverSpec": {
            "podTemplateSpec": driver_template(
                source,
                application,
                secrets,
                connector,
                options,
                metrics_port=metrics_port,
                documentation_url=documentation_url,
                conf=conf,
            )
        },
        "executorSpec": {"podTemplateSpec": executor_template(application, secrets)},
        "applicationTolerations": _tolerations(max_failures, ends=ends),
    }
    annotations = application_annotations(
        source, application, secrets=secrets, conf=conf, failures=failures
    )
    return {
        "apiVersion": APACHE_APPLICATION.api_version,
        "kind": APACHE_APPLICATION.kind,
        "metadata": source.metadata(name, annotations=annotations),
        "spec": spec,
    }


def drained(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a lost application for one executor, without a limit of failures."""
    after = copy.deepcopy(dict(spec))
    after["sparkConf"] = {**after.get("sparkConf", {}), "spark.executor.instances": "1"}
    after["applicationTolerations"] = _tolerations(None, ends=True)
    return after


def service_account(spec: Mapping[str, Any]) -> str:
    """Return the service account of the driver; empty if the spec names none."""
    return str((spec.get("sparkConf") or {}).get(_ACCOUNT) or "")


def _settings(source: Identity, application: Application, parallelism: int) -> dict[str, str]:
    """What other fields of the spec say.

    They win over settings of the user, as Kubeflow's fields do.
    """
    pull_secrets = ",".join(application.image_pull_secrets)
    return {
        "spark.kubernetes.container.image": application.image,
        "spark.kubernetes.container.image.pullPolicy": application.image_pull_policy.value,
        **({"spark.kubernetes.container.image.pullSecrets": pull_secrets} if pull_secrets else {}),
        _ACCOUNT: application.service_account,
        "spark.driver.cores": str(application.driver.cores),
        "spark.driver.memory": application.driver.memory,
        "spark.executor.cores": str(application.executor.cores),
        "spark.executor.memory": application.executor.memory,
        "spark.executor.instances": str(executors(parallelism, application)),
        **{
            f"spark.kubernetes.{role}.label.{k}": v
            for role in _ROLES
            for k, v in source.pod_labels.items()
        },
        # Without it Spark takes the first container of a template, which may be a user's own.
        "spark.kubernetes.driver.podTemplateContainerName": DRIVER_CONTAINER,
        "spark.kubernetes.executor.podTemplateContainerName": EXECUTOR_CONTAINER,
    }


def _tolerations(max_failures: int | None, *, ends: bool) -> dict[str, Any]:
    """Its part of restarts, as Kubeflow's. Its defaults are `Never` and three attempts."""
    return {
        "restartConfig": {
            "restartPolicy": "OnFailure",
            "maxRestartAttempts": retries(max_failures, ends=ends),
            "restartBackoffMillis": RETRY_SECONDS * 1000,
            "restartCounterResetMillis": int(RUN_LONG_ENOUGH * 1000),
        },
        # The pod of a driver that has failed is kept with its log, until the application is
        # replaced.
        "resourceRetainPolicy": "OnFailure",
    }
