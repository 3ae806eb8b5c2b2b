"""The two Spark operators: what each of them is given, and how what it says is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from balanced_source_operator.resources import apache_application, spark_application
from balanced_source_operator.resources.apache_states import as_kubeflow
from balanced_source_operator.resources.kinds import (
    APACHE_APPLICATION,
    KUBEFLOW_APPLICATION,
    ResourceKind,
)
from balanced_source_operator.spec import application as spec


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOperator:
    """One of them.

    Attributes:
        name: as people know it.
        kind: of its SparkApplication.
        build: returns the manifest of an application.
        view: returns an application with its status in the words that decisions are made by, which
            are Kubeflow's.
        drained: returns the spec of a drain attempt, by that of the lost application.
        account: returns the service account of an application's driver, by its spec.
        image: returns the image of an application, by its spec.
    """

    name: str
    kind: ResourceKind
    build: Callable[..., dict[str, Any]]
    view: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    drained: Callable[[Mapping[str, Any]], dict[str, Any]]
    account: Callable[[Mapping[str, Any]], str]
    image: Callable[[Mapping[str, Any]], str]


_KUBEFLOW: Final = SparkOperator(
    name="Kubeflow's spark-operator",
    kind=KUBEFLOW_APPLICATION,
    build=spark_application.spark_application,
    view=lambda seen: seen,
    drained=spark_application.drained,
    account=spark_application.service_account,
    image=lambda seen: str(seen.get("image") or ""),
)
_APACHE: Final = SparkOperator(
    name="Apache's spark-kubernetes-operator",
    kind=APACHE_APPLICATION,
    build=apache_application.apache_application,
    view=as_kubeflow,
    drained=apache_application.drained,
    account=apache_application.service_account,
    image=apache_application.image,
)

SPARK_OPERATORS: Final[Mapping[spec.Provider, SparkOperator]] = {
    spec.Provider.KUBEFLOW: _KUBEFLOW,
    spec.Provider.APACHE: _APACHE,
}
"""By the value of `spec.application.provider`."""


def kind_of(application: Mapping[str, Any]) -> ResourceKind:
    """Return the kind of a SparkApplication, by its group."""
    is_apache = str(application.get("apiVersion", "")).startswith(f"{APACHE_APPLICATION.group}/")
    return APACHE_APPLICATION if is_apache else KUBEFLOW_APPLICATION


def service_account_of(application: Mapping[str, Any]) -> str:
    """Return the service account of an application's driver; empty if it names none."""
    return operator_of(application).account(application.get("spec") or {})


def image_of(application: Mapping[str, Any]) -> str:
    """Return the image of an application; empty if it names none."""
    return operator_of(application).image(application.get("spec") or {})


def operator_of(application: Mapping[str, Any]) -> SparkOperator:
    """Return the Spark operator that an application is for, by its group."""
    kind = kind_of(application)
    return next(o for o in SPARK_OPERATORS.values() if o.kind == kind)
