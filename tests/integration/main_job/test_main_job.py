"""The operator against a real API server and broker, with a driver that is real but for Spark."""

import json

import pytest

from balanced_source.documents.assignment import Assignment
from balanced_source.errors import FencedError, SourceInUseError
from balanced_source_spark import claims
from support.stand_in_driver import in_pod
from support.story.operator_process import OperatorProcess
from support.story.watch import moves
from testbed.errors import CommandError

from .conftest import World


def loads(assignment: Assignment) -> list[int]:
    return sorted(
        list(assignment.owners.values()).count(reader) for reader in range(assignment.parallelism)
    )


def test_from_apply_to_reading(world: World) -> None:
    """Discovered, assigned, stored, published; only then the application.

    Then registered and acknowledged.
    """
    world.kafka.admin.create_topic(world.topic, partitions=5)

    world.apply()

    application = world.wait(
        lambda: world.control_plane.get(
            "sparkapplications.sparkoperator.k8s.io", "orders-1", world.namespace
        ),
        "the application",
    )
    assert loads(world.source.assignment) == [2, 3]
    assert application["spec"]["executor"]["instances"] == 2
    driver = world.driver()
    offset = driver.adopt(parallelism=2)
    assert len(offset.owners) == 5
    status = world.wait(
        lambda: s if (s := world.source.status)["acknowledgedEpoch"] == s["epoch"] else None,
        "the acknowledgement",
    )
    assert (status["readers"], status["splits"], status["balance"]) == (2, 5, {"min": 2, "max": 3})


def test_kubectl_scale_takes_effect_live_with_fewest_moves(world: World) -> None:
    world.kafka.admin.create_topic(world.topic, partitions=12)
    world.apply(parallelism=3)
    driver = world.driver()
    driver.adopt(parallelism=3)
    before = world.source.assignment

    world.kubectl("scale", "bsrc/orders", "--replicas=4")

    driver.adopt(parallelism=4)
    after = world.source.assignment
    assert loads(after) == [3, 3, 3, 3]
    assert moves(before, after) == 3
    application = world.control_plane.items(
        "sparkapplications.sparkoperator.k8s.io", world.namespace
    )
    assert [a["metadata"]["name"] for a in application] == ["orders-1"], (
        "a rescale must not touch the application"
    )
    assert application[0]["metadata"]["generation"] == 1


def test_new_partitions_go_to_the_least_loaded_and_nothing_moves(world: World) -> None:
    world.kafka.admin.create_topic(world.topic, partitions=3)
    world.apply()
    driver = world.driver()
    driver.adopt(parallelism=2)
    before = world.source.assignment

    world.kafka.admin.add_partitions(world.topic, 6)

    world.wait(lambda: [driver.batch(), len(driver.offset.owners) == 6][1], "the new partitions")
    after = world.source.assignment
    assert loads(after) == [3, 3]
    assert moves(before, after) == 0


def test_a_new_driver_gets_its_splits_back_at_its_own_positions(world: World) -> None:
    world.kafka.admin.create_topic(world.topic, partitions=4)
    world.apply()
    first = world.driver()
    first.adopt(parallelism=2)
    first.batch(rows_per_split=7)
    before = world.source.assignment
    first.close()

    second = world.driver(first)
    world.wait(lambda: second.batch() or second.offset.epoch > before.epoch, "a new epoch")

    after = world.source.assignment
    assert after.owners == before.owners
    assert after.incarnations == {"0": before.incarnations["0"] + 1}
    assert set(second.offset.positions.values()) == {7}


def test_an_older_driver_that_still_lives_is_fenced(world: World) -> None:
    world.kafka.admin.create_topic(world.topic, partitions=2)
    world.apply()
    old = world.driver()
    old.adopt(parallelism=2)

    new = world.driver(old)
    world.wait(lambda: new.batch() or new.offset.epoch > old.offset.epoch, "the new driver to read")
    world.kubectl("scale", "bsrc/orders", "--replicas=1")
    new.adopt(parallelism=1)

    with pytest.raises(FencedError, match="another query has taken over"):
        world.wait(lambda: not old.batch(1), "the old driver to end")
    assert old.offset.parallelism == 2
    assert world.source.report.incarnation == 2


def test_a_second_query_is_refused_while_the_first_one_reads(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "PATIENCE", 3.0)
    world.kafka.admin.create_topic(world.topic, partitions=2)
    world.apply()
    first = world.driver()
    first.adopt(parallelism=2)

    second = world.driver(instance=in_pod("laptop"))

    def refused() -> bool:
        assert first.batch(1), "the first one reads on"
        return second.batch()

    with pytest.raises(
        SourceInUseError, match=r"being read by another query .pod orders-1-driver, incarnation 1"
    ):
        world.wait(refused, "the second one to end")
    assert world.source.assignment.incarnations == {"0": 1}


def test_killing_the_operator_moves_nothing_and_its_successor_continues(
    world: World, operator: OperatorProcess
) -> None:
    world.kafka.admin.create_topic(world.topic, partitions=4)
    world.apply()
    driver = world.driver()
    driver.adopt(parallelism=2)
    before = world.source.assignment

    operator.kill()
    assert driver.batch(rows_per_split=1), "the query does not need an operator"
    world.source.patch({"parallelism": 4})
    operator.start()

    driver.adopt(parallelism=4)
    after = world.source.assignment
    assert after.epoch > before.epoch
    assert moves(before, after) == 2


def test_suspend_stops_the_application_and_resume_starts_another(world: World) -> None:
    world.kafka.admin.create_topic(world.topic, partitions=2)
    world.apply()
    get = "sparkapplications.sparkoperator.k8s.io"
    world.wait(lambda: world.control_plane.items(get, world.namespace), "the application")

    world.source.patch({"suspend": True})
    world.wait(lambda: not world.control_plane.items(get, world.namespace), "the application to go")
    world.wait_condition("Ready", "False", "Suspended")
    world.source.patch({"suspend": False})

    world.wait(lambda: world.control_plane.items(get, world.namespace), "the application again")


def test_deleting_the_source_leaves_nothing_behind(world: World) -> None:
    world.kafka.admin.create_topic(world.topic, partitions=2)
    world.apply()
    world.driver().adopt(parallelism=2)
    kinds = "configmaps,roles,rolebindings,sparkapplications.sparkoperator.k8s.io"

    def children() -> list[str]:
        found = json.loads(
            world.kubectl("get", kinds, "-l", "balancedsource.io/name=orders", "-o", "json")
        )
        return [item["metadata"]["name"] for item in found["items"]]

    assert len(children()) == 6

    world.kubectl("delete", "bsrc", "orders", "--timeout=20s")

    world.wait(lambda: not children(), "everything to be collected")


def test_the_driver_may_do_nothing_but_read_its_assignment_and_write_its_report(
    world: World,
) -> None:
    world.kafka.admin.create_topic(world.topic, partitions=1)
    world.apply()
    world.wait(lambda: world.config_map("readers"), "the report's ConfigMap")
    user = f"system:serviceaccount:{world.namespace}:spark"

    def may(verb: str, what: str) -> bool:
        try:
            return "yes" in world.kubectl("auth", "can-i", verb, what, "--as", user)
        except CommandError:
            return False  # kubectl exits with 1 for "no"

    assert may("get", "configmaps/orders-assignment")
    assert may("patch", "configmaps/orders-readers")
    for verb, what in (
        ("patch", "configmaps/orders-assignment"),
        ("get", "configmaps/orders-enumerator"),
        ("delete", "configmaps/orders-readers"),
        ("create", "configmaps"),
        ("list", "configmaps"),
        ("get", "secrets"),
        ("get", "balancedsources.balancedsource.io/orders"),
    ):
        assert not may(verb, what), f"the driver must not {verb} {what}"


@pytest.mark.parametrize("strategy", ["RoundRobin", "Hash"])
def test_each_strategy_assigns_everything(world: World, strategy: str) -> None:
    world.kafka.admin.create_topic(world.topic, partitions=5)

    world.apply(assignment={"strategy": strategy})

    world.wait(
        lambda: world.config_map("assignment") and len(world.source.assignment.owners) == 5,
        "an assignment",
    )
