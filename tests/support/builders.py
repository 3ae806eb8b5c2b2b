"""Values for tests, with everything that a test does not care about filled in."""

from collections.abc import Mapping
from typing import Any

from balanced_source.documents.report import HostReport
from balanced_source_adapters.connectors import installed
from balanced_source_operator.controller.translate import texts_of, to_source
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import HASH_ANNOTATION
from balanced_source_operator.spec import BalancedSourceSpec, parse_spec

UID = "11111111-2222-3333-4444-555555555555"


def identity(name: str = "orders") -> Identity:
    """Of a BalancedSource."""
    return Identity(namespace="default", name=name, uid=UID)


def spec_json(**changes: Any) -> dict[str, Any]:
    """A spec as a user writes it."""
    spec: dict[str, Any] = {
        "parallelism": 2,
        "source": {
            "kafka": {
                "clusters": [{"name": "main", "bootstrapServers": "broker:9092"}],
                "subscription": {"topics": ["orders"]},
            }
        },
        "application": {
            "image": "balanced-source/spark:4.2.0",
            "sparkVersion": "4.2.0",
            "pipeline": {"checkpointLocation": "/data/checkpoint"},
        },
    }
    return {**spec, **changes}


def make_spec(**changes: Any) -> BalancedSourceSpec:
    """A valid spec."""
    return parse_spec(spec_json(**changes))


def source_of(spec: BalancedSourceSpec, text: str | None) -> Any:
    """The source that a spec asks for, if `text` is in each ConfigMap that it refers to."""
    return to_source(spec, dict.fromkeys(texts_of(spec), text))


def secrets_of(source: Any) -> tuple[str, ...]:
    """Secrets that readers of a source mount."""
    return installed().of(source).secrets(source)


def source_body(
    name: str = "orders", *, generation: int = 1, revision: int = 1, **changes: Any
) -> dict[str, Any]:
    """A BalancedSource's manifest."""
    return {
        "apiVersion": "balancedsource.io/v1alpha1",
        "kind": "BalancedSource",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": UID,
            "generation": generation,
            "resourceVersion": str(revision),
        },
        "spec": spec_json(**changes),
    }


def spark_application(
    name: str = "orders-1",
    *,
    state: str = "RUNNING",
    spec_hash: str = "h",
    at: str = "2026-01-01T00:00:00Z",
    **more: Any,
) -> dict[str, Any]:
    """A SparkApplication as its operator keeps it."""
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "creationTimestamp": at,
        "annotations": {HASH_ANNOTATION: spec_hash},
        **more,
    }
    return {"metadata": metadata, "status": {"applicationState": {"state": state}}}


def driver_pod(
    application: str = "orders-1", *, phase: str = "Running", **more: Any
) -> dict[str, Any]:
    """A driver's pod."""
    labels = {"spark-role": "driver", "sparkoperator.k8s.io/app-name": application}
    return {
        "metadata": {"name": f"{application}-driver", "labels": labels, **more},
        "status": {"phase": phase},
    }


def make_report(
    incarnation: int = 1, *, positions: Mapping[Any, int] | None = None, **changes: Any
) -> HostReport:
    """A report of a driver."""
    held = dict(positions or {})
    return HostReport(
        incarnation=incarnation, positions=held, owners=dict.fromkeys(held, 0), **changes
    )
