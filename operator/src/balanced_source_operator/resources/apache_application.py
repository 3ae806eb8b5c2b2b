"""The SparkApplication of Apache's operator (`spark.apache.org/v1`, release 1.0.0).

It submits through Spark's own Kubernetes code, so most of what is a field at Kubeflow is a Spark
setting here. It starts a driver once: what failed is started again by the operator of the source,
as a new application.
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
    application_annotations,
    executors,
)
from balanced_source_operator.spec import Application

PYTHON_RUNNER: Final = "org.apache.spark.deploy.PythonRunner"
"""Main class of every PySpark program; the first of `pyFiles` is then the program."""

_YEARS: Final = 10 * 365 * 24 * 3600 * 1000
"""Milliseconds: in effect never."""

_OWN_DEFAULTS: Final[Mapping[str, str]] = {
    # Unless it restarts drivers itself, it keeps the pods of executors that ended.
    "spark.kubernetes.executor.deleteOnTermination": "true",
}
"""Spark settings against defaults of the operator. A user's own win over them."""

_ROLES: Final = ("driver", "executor")
_IMAGE: Final = "spark.kubernetes.container.image"
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
    """The manifest; arguments as those of `spark_application`.

    Limits of restarts are not in it: the operator of the source counts.
    """
    del max_failures, is_bounded
    spec: dict[str, Any] = {
        "mainClass": PYTHON_RUNNER,
        "pyFiles": application.main_application_file,
        "driverArgs": list(application.arguments),
        "deploymentMode": "ClusterMode",
        "runtimeVersions": {"sparkVersion": application.spark_version},
        "sparkConf": {
            **_OWN_DEFAULTS,
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
        "applicationTolerations": _tolerations(),
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
    """Return the spec of a lost application for one executor."""
    after = copy.deepcopy(dict(spec))
    after["sparkConf"] = {**after.get("sparkConf", {}), "spark.executor.instances": "1"}
    after["applicationTolerations"] = _tolerations()
    return after


def image(spec: Mapping[str, Any]) -> str:
    """Return the image of the driver; empty if the spec names none."""
    return str((spec.get("sparkConf") or {}).get(_IMAGE) or "")


def service_account(spec: Mapping[str, Any]) -> str:
    """Return the service account of the driver; empty if the spec names none."""
    return str((spec.get("sparkConf") or {}).get(_ACCOUNT) or "")


def _settings(source: Identity, application: Application, parallelism: int) -> dict[str, str]:
    """What other fields of the spec say.

    They win over settings of the user, as Kubeflow's fields do.
    """
    pull_secrets = ",".join(application.image_pull_secrets)
    return {
        _IMAGE: application.image,
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


def _tolerations() -> dict[str, Any]:
    """What the operator does about failures and time-outs."""
    return {
        # With any other policy it deletes the pod of a failed driver, and with it the log and the
        # cause, before it starts the next one.
        "restartConfig": {"restartPolicy": "Never"},
        "resourceRetainPolicy": "OnFailure",
        "applicationTimeoutConfig": {
            # 0: never. A driver that waits for a node or an image has not failed.
            "driverStartTimeoutMillis": 0,
            "driverReadyTimeoutMillis": 0,
            "executorStartTimeoutMillis": 0,
            # Later it would delete pods without waiting for their processes to end, and the next
            # driver would write beside a former one whose node does not answer.
            "forceTerminationGracePeriodMillis": _YEARS,
        },
    }
