"""Kubernetes' own horizontal pod autoscaler drives a source by its scale subresource."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.metrics_server import METRIC, MetricsServer
from testbed.control_plane import ControlPlane

from .conftest import World

pytestmark = pytest.mark.thorough


@pytest.fixture
def metrics(control_plane: ControlPlane, tmp_path: Path) -> Iterator[MetricsServer]:
    with MetricsServer(control_plane, tmp_path) as server:
        yield server


def autoscaler(world: World, target: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "orders", "namespace": world.namespace},
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "balancedsource.io/v1alpha1",
                "kind": "BalancedSource",
                "name": "orders",
            },
            "minReplicas": 1,
            "maxReplicas": 8,
            "metrics": [
                {"type": "External", "external": {"metric": {"name": METRIC}, "target": target}}
            ],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }


def condition(world: World, kind: str) -> dict[str, Any]:
    found = world.control_plane.get("hpa", "orders", world.namespace) or {}
    return next((c for c in found.get("status", {}).get("conditions", []) if c["type"] == kind), {})


def test_average_value_follows_the_lag_live_and_value_changes_nothing(
    world: World, metrics: MetricsServer
) -> None:
    """With Value and a selector that matched the driver's pod, overload made it scale down."""
    world.kafka.admin.create_topic(world.topic, partitions=8)
    world.apply()
    driver = world.driver()
    driver.adopt(parallelism=2)
    metrics.value = 900

    world.control_plane.apply(autoscaler(world, {"type": "Value", "value": "150"}))

    world.wait(
        lambda: condition(world, "ScalingActive").get("status") == "False",
        "the refusal of Value",
        timeout=90,
    )
    assert "no pods returned by selector" in condition(world, "ScalingActive")["message"]
    assert world.source.get()["spec"]["parallelism"] == 2

    world.control_plane.apply(autoscaler(world, {"type": "AverageValue", "averageValue": "150"}))

    driver.adopt(parallelism=6, timeout=90)
    metrics.value = 200
    driver.adopt(parallelism=2, timeout=90)
    application = world.control_plane.items(
        "sparkapplications.sparkoperator.k8s.io", world.namespace
    )
    assert [a["metadata"]["generation"] for a in application] == [1], (
        "a rescale must not touch the application"
    )
