"""KEDA drives a source: what a ScaledObject does to `parallelism`, and what it cannot do."""

from typing import Any

import pytest

from keda.conftest import Scene
from keda.scaled_object import PAUSED, TIMEOUT
from support.stand_in_driver import StandInDriver
from testbed.errors import CommandError
from testbed.waiting import wait_until

PARTITIONS = 8


def read(scene: Scene, **spec: Any) -> StandInDriver:
    """Start the source as the example says it: without `parallelism`."""
    world = scene.source
    world.kafka.admin.create_topic(world.topic, partitions=PARTITIONS)
    manifest = world.manifest(**spec)
    del manifest["spec"]["parallelism"]
    world.control_plane.apply(manifest)
    driver = world.driver()
    driver.adopt(parallelism=1, timeout=TIMEOUT)
    return driver


def report(driver: StandInDriver, lag: int) -> None:
    """Let the driver run a micro-batch, as soon as it may, and report a lag."""
    driver.lag = lag
    wait_until(lambda: driver.batch(rows_per_split=1), TIMEOUT, "a micro-batch")


def parallelism(scene: Scene) -> int:
    return int(scene.source.source.get()["spec"]["parallelism"])


def test_the_example_follows_the_lag_up_and_down(scene: Scene) -> None:
    driver = read(scene)
    report(driver, 65_000)

    scene.scaled.apply()

    driver.adopt(parallelism=7, timeout=TIMEOUT)
    report(driver, 15_000)
    driver.adopt(parallelism=2, timeout=TIMEOUT)
    scene.scaled.wait_condition("Ready", "True")
    hpa = scene.scaled.hpa
    assert hpa is not None
    (metric,) = hpa["spec"]["metrics"]
    assert metric["external"]["target"]["type"] == "AverageValue"
    (application,) = scene.source.control_plane.items(
        "sparkapplications.sparkoperator.k8s.io", scene.source.namespace
    )
    assert application["metadata"]["generation"] == 1, "a rescale must not touch the application"


def test_a_lost_driver_is_no_reason_to_scale_down(scene: Scene) -> None:
    """A lag that is unknown is no lag of 0, which KEDA makes of it by default."""
    driver = read(scene)
    report(driver, 65_000)
    scene.scaled.apply()
    driver.adopt(parallelism=7, timeout=TIMEOUT)

    driver.close()

    refusal = scene.scaled.wait_hpa_condition("ScalingActive", "False")
    assert refusal["reason"] == "FailedGetExternalMetric"
    assert parallelism(scene) == 7
    successor = scene.source.driver(driver)
    successor.adopt(parallelism=7, timeout=TIMEOUT)
    report(successor, 15_000)
    successor.adopt(parallelism=2, timeout=TIMEOUT)


def test_a_minimum_of_zero_is_refused_at_no_load_and_stops_nothing(scene: Scene) -> None:
    driver = read(scene)
    report(driver, 0)

    scene.scaled.apply(minReplicaCount=0)

    scene.scaled.wait_condition("Ready", "False")
    assert "greater than or equal to 1" in scene.scaled.wait_event(
        "KEDAScaleTargetDeactivationFailed"
    )
    assert parallelism(scene) == 1
    report(driver, 65_000)
    driver.adopt(parallelism=7, timeout=TIMEOUT)
    scene.scaled.wait_condition("Ready", "True")


def test_paused_replicas_wins_over_the_load_and_zero_is_refused(scene: Scene) -> None:
    driver = read(scene)
    report(driver, 65_000)
    scene.scaled.apply()
    driver.adopt(parallelism=7, timeout=TIMEOUT)

    scene.scaled.annotate(f"{PAUSED}=3")

    driver.adopt(parallelism=3, timeout=TIMEOUT)
    scene.scaled.wait_condition("Paused", "True")
    scene.scaled.annotate(f"{PAUSED}-")
    driver.adopt(parallelism=7, timeout=TIMEOUT)
    scene.scaled.annotate(f"{PAUSED}=0")
    scene.scaled.wait_condition("Ready", "False")
    assert parallelism(scene) == 7


def test_a_suspended_source_stays_stopped_and_resumes_with_the_newest_number(scene: Scene) -> None:
    driver = read(scene)
    report(driver, 65_000)
    scene.scaled.apply()
    driver.adopt(parallelism=7, timeout=TIMEOUT)
    world = scene.source
    world.source.patch({"suspend": True})
    world.wait_condition("Ready", "False", "Suspended", timeout=TIMEOUT)
    driver.close()

    scene.scaled.annotate(f"{PAUSED}=3")

    world.wait(lambda: parallelism(scene) == 3, "KEDA to change parallelism", timeout=TIMEOUT)
    assert world.source.condition("Ready")["reason"] == "Suspended"
    assert not world.control_plane.items("sparkapplications.sparkoperator.k8s.io", world.namespace)
    world.source.patch({"suspend": False})
    world.driver(driver).adopt(parallelism=3, timeout=TIMEOUT)


def test_a_source_says_that_keda_and_its_own_autoscaler_undo_each_other(scene: Scene) -> None:
    driver = read(scene, autoscaling={"minReaders": 1, "maxReaders": 2})
    # more than an HPA's tolerance of a tenth beyond each number on the way
    report(driver, 80_000)
    world = scene.source

    scene.scaled.apply()

    fight = world.wait_condition("Autoscaling", "False", "TwoAutoscalers", timeout=TIMEOUT)
    assert "spec.autoscaling undoes it: 2 readers now" in fight["message"]
    assert "ScaledObject" in fight["message"]
    world.wait(lambda: world.events().count("TwoAutoscalers") == 1, "one event")
    world.source.patch({"autoscaling": None})
    driver.adopt(parallelism=8, timeout=TIMEOUT)
    world.wait(lambda: world.source.condition("Autoscaling") == {}, "the condition to go")


def test_keda_refuses_a_second_autoscaler_of_a_source(scene: Scene) -> None:
    read(scene)
    world = scene.source
    world.kubectl("autoscale", "bsrc/orders", "--min=1", "--max=8", "--name=by-hand")

    with pytest.raises(CommandError, match="already managed by the hpa 'by-hand'"):
        scene.scaled.apply()
    world.kubectl("delete", "hpa", "by-hand")
    world.wait(lambda: not refusal(scene), "KEDA to take the source", timeout=TIMEOUT)

    second = scene.scaled.manifest()
    second["metadata"]["name"] = "second"
    with pytest.raises(CommandError, match="already managed by the ScaledObject 'orders'"):
        world.control_plane.apply(second)


def refusal(scene: Scene) -> str:
    """Apply the ScaledObject; returns why it is refused, empty if it is not."""
    try:
        scene.scaled.apply()
    except CommandError as error:
        return str(error)
    return ""
