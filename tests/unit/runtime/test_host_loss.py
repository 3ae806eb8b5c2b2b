"""A host that falls silent.

Its splits wait, or others get them after a drain attempt, by policy.
"""

from typing import Any

import pytest

from balanced_source.coordinator import HostPhase, HostRole, HostState
from balanced_source_operator.controller.drain import replaced
from balanced_source_operator.resources.kinds import (
    CONFIG_MAP,
    DRAIN_ANNOTATION,
    INCARNATION_ANNOTATION,
    KUBEFLOW_APPLICATION,
    POD,
)
from support.cluster_story import NAMESPACE, Story
from support.host_drivers import Drivers, application, base
from support.lost_hosts import degraded, is_drain, lose, newest, play_on, roles, with_policy
from support.played_story import played


def test_by_default_the_splits_wait_and_a_condition_says_so() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=application(count=2))
        await drivers.rest("0", "1")
        lose(drivers, "1", is_marked=False)

        await play_on(drivers, 130)

        assert roles(story) == {"0": "Member", "1": "Member"}
        assert len(drivers.of["0"].host.durable.owners) == 4
        assert degraded(story)["reason"] == "HostLost"
        assert degraded(story)["message"].startswith(
            "Host 1 has not reported for 120 s. Its 4 splits must wait until its application runs"
        )
        drivers.absent.clear()
        await story.until(
            lambda: [drivers.step(), degraded(story)["status"] == "False"][1], "all to be well"
        )
        drivers.check_each_once()

    played(play)


def test_a_lost_host_is_drained_and_its_splits_go_to_the_others() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=with_policy(type="Reassign", after="1m"))
        await drivers.rest("0", "1")
        story.broker.ends = {split: end + 3 for split, end in story.broker.ends.items()}
        drivers.of["1"].batch(die="delivered")
        lose(drivers, "1")

        await story.until(lambda: [drivers.step(), is_drain(story, "1")][1], "the drain attempt")
        assert roles(story)["1"] == "Draining"
        drain = story.server.find(KUBEFLOW_APPLICATION, NAMESPACE, newest(story, "1"))
        assert drain["spec"]["executor"]["instances"] == 1
        await play_on(drivers, 10)
        assert len(drivers.of["0"].host.durable.owners) == 4, (
            "nobody knows yet what host 1 has delivered"
        )
        assert "drain attempt" in str([c["message"] for c in story.status["conditions"]])

        drivers.absent.clear()

        await story.until(
            lambda: [drivers.step(), len(drivers.of["0"].host.durable.owners) == 8][1],
            "host 0 alone",
        )
        await drivers.rest("0", "1")
        assert not is_drain(story, "1")
        assert degraded(story)["status"] == "False"
        drivers.check_each_once()

    played(play)


def test_a_drain_attempt_has_the_settings_of_the_lost_application_first() -> None:
    """Settings may have changed while the host was away, and it may have begun a micro-batch."""

    async def play(story: Story) -> None:
        drivers = Drivers(story)
        held = {"policy": "OnNonce"}
        policy = with_policy(type="Reassign", after="1m")
        await story.begin(parallelism=4, application={**policy, "restart": held})
        await drivers.rest("0", "1")
        former = image(story)
        story.patch(application={**policy, "restart": held, "image": "shop/orders:next"})
        lose(drivers, "1", is_marked=False)

        await story.until(lambda: [drivers.step(), is_drain(story, "1")][1], "the drain attempt")
        assert image(story) == former
        await play_on(drivers, 30)
        assert image(story) == former, "what is in effect now does not replace it"

        lose(drivers, "1")
        await story.until(
            lambda: [drivers.step(), image(story) == "shop/orders:next"][1],
            "the settings in effect",
        )
        assert is_drain(story, "1")
        drivers.absent.clear()
        await drivers.rest("0", "1")
        drivers.check_each_once()

    played(play)


def image(story: Story) -> str | None:
    """Image of the application of host 1."""
    found = story.server.find(KUBEFLOW_APPLICATION, NAMESPACE, newest(story, "1"))
    return found["spec"].get("image") if found is not None else None


def test_a_drain_attempt_that_fails_is_tried_again_and_says_so() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(
            parallelism=4,
            restart={"maxFailures": 1},
            application=with_policy(type="Reassign", after="1m"),
        )
        await drivers.rest("0", "1")
        lose(drivers, "1")
        await story.until(lambda: [drivers.step(), is_drain(story, "1")][1], "the drain attempt")

        lose(drivers, "1")
        await play_on(drivers, 5)
        assert degraded(story)["reason"] == "ApplicationFailed"
        assert "; also HostLost: Host 1 has not reported" in degraded(story)["message"]
        assert len(drivers.of["0"].host.durable.owners) == 4
        await play_on(drivers, 120)
        drivers.absent.clear()

        await drivers.rest("0", "1")
        drivers.check_each_once()

    played(play)


def test_a_host_that_comes_back_in_time_keeps_its_splits() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=with_policy(type="Reassign", after="1m"))
        await drivers.rest("0", "1")
        held = drivers.of["1"].host.durable.owners
        lose(drivers, "1", is_marked=False)
        await play_on(drivers, 50)
        drivers.absent.clear()
        await play_on(drivers, 80)

        assert roles(story) == {"0": "Member", "1": "Member"}
        assert drivers.of["1"].host.durable.owners == held
        drivers.check_each_once()

    played(play)


def test_a_drain_attempt_waits_until_the_pod_of_the_lost_driver_is_gone() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=with_policy(type="Reassign", after="1m"))
        await drivers.rest("0", "1")
        pod = driver_pod(newest(story, "1"))
        story.server.add(POD, pod)
        drivers.absent.add("1")
        await story.until(
            lambda: [drivers.step(), roles(story).get("1") == "Draining"][1],
            "the host to be given up",
        )

        await play_on(drivers, 10)
        assert f"{pod['metadata']['name']} must be gone" in degraded(story)["message"]
        assert not is_drain(story, "1")
        story.server.remove(POD, NAMESPACE, pod["metadata"]["name"])
        await story.until(lambda: [drivers.step(), is_drain(story, "1")][1], "the drain attempt")
        drivers.absent.clear()

        await drivers.rest("0", "1")
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize(
    ("case", "is_replaced"),
    [
        ("its driver was lost", True),
        ("its driver is gone", True),
        ("its driver starts", False),
        ("its driver reports again", False),
        ("it is the drain attempt", False),
        ("it is deleted already", False),
    ],
)
def test_a_lost_host_keeps_an_application_that_will_settle_what_was_delivered(
    case: str, is_replaced: bool
) -> None:
    name, before = "orders-1", "2" if case == "its driver starts" else "1"
    metadata: dict[str, Any] = {"name": name, "annotations": {INCARNATION_ANNOTATION: before}}
    if case == "it is the drain attempt":
        metadata["annotations"] |= {DRAIN_ANNOTATION: "true"}
    if case == "it is deleted already":
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    pods = [driver_pod(name)] if case != "its driver is gone" else []
    phase = HostPhase.ACTIVE if case == "its driver reports again" else HostPhase.LOST
    host = HostState(role=HostRole.DRAINING, phase=phase, incarnation=2)

    decision = replaced(host, [{"metadata": metadata}], pods)

    assert (decision is not None) is is_replaced
    assert decision is None or [m["metadata"]["name"] for m in decision.delete] == [name]


def test_a_drain_attempt_of_a_host_that_is_a_member_again_is_replaced() -> None:
    """The state was restored from a copy that is older than the loss."""
    metadata = {"name": "orders-1", "annotations": {DRAIN_ANNOTATION: "true"}}

    assert replaced(HostState(), [{"metadata": metadata}], []) is not None
    assert replaced(None, [{"metadata": metadata}], []) is None


def test_with_duplicates_allowed_no_drain_attempt_is_waited_for() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        policy = {"type": "Reassign", "after": "1m", "guarantee": "AtLeastOnce"}
        await story.begin(parallelism=4, application=with_policy(**policy))
        await drivers.rest("0", "1")
        lose(drivers, "1", is_marked=False)

        await story.until(
            lambda: [drivers.step(), len(drivers.of["0"].host.durable.owners) == 8][1],
            "host 0 alone",
        )
        assert roles(story) == {"0": "Member", "1": "Joining"}
        assert (
            degraded(story)["message"]
            == "Host 1 has not reported for 60 s. The other hosts read its splits"
        )

        drivers.absent.clear()
        await drivers.rest("0", "1")
        drivers.check_each_once()

    played(play)


def test_no_host_is_given_up_while_all_are_silent() -> None:
    """Then the API server or the operator's watch is out of reach, or no one could take over."""

    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=with_policy(type="Reassign", after="1m"))
        await drivers.rest("0", "1")
        for host in ("0", "1"):
            lose(drivers, host, is_marked=False)
        await play_on(drivers, 120)
        assert roles(story) == {"0": "Member", "1": "Member"}
        drivers.absent.discard("0")
        await play_on(drivers, 50)
        assert roles(story) == {"0": "Member", "1": "Member"}, "host 1 has a minute from now on"
        drivers.absent.clear()
        await drivers.rest("0", "1")
        drivers.check_each_once()

    played(play)


def test_a_host_that_is_away_when_the_state_is_lost_is_drained() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=with_policy(type="Reassign", after="1m"))
        await drivers.rest("0", "1")
        lose(drivers, "1")
        await story.operators.pop().stop()
        story.server.remove(CONFIG_MAP, NAMESPACE, "orders-enumerator")
        story.start_operator()

        await story.until(lambda: [drivers.step(), is_drain(story, "1")][1], "the drain attempt")
        assert roles(story)["1"] == "Draining"
        drivers.absent.clear()
        await drivers.rest("0", "1")
        drivers.check_each_once()

    played(play)


def test_the_policy_decides_whether_hosts_must_stop_without_a_report() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=with_policy(type="Reassign", after="1m"))
        await drivers.rest("0", "1")
        epoch = story.status["epoch"]
        assert assigned(story).count('"reportWithin":30') == 1

        story.patch(application=with_policy(type="Wait"))
        await story.until(
            lambda: [drivers.step(), "reportWithin" not in assigned(story)][1], "the policy"
        )
        story.patch(application=with_policy(type="Reassign", after="4m"))
        await story.until(
            lambda: [drivers.step(), '"reportWithin":120' in assigned(story)][1], "the policy"
        )
        assert story.status["epoch"] == epoch, "nothing is assigned anew"

    played(play)


def test_an_operator_that_restarts_drains_on() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=with_policy(type="Reassign", after="1m"))
        await drivers.rest("0", "1")
        lose(drivers, "1")
        await story.until(lambda: [drivers.step(), is_drain(story, "1")][1], "the drain attempt")
        await story.operators.pop().stop()
        story.start_operator()
        await play_on(drivers, 30)
        assert is_drain(story, "1")
        drivers.absent.clear()

        await drivers.rest("0", "1")
        drivers.check_each_once()

    played(play)


def assigned(story: Story) -> str:
    found = story.server.find(CONFIG_MAP, NAMESPACE, f"{base('1')}-assignment")
    return str((found or {}).get("data", {}).get("document.json", ""))


def driver_pod(application: str) -> dict[str, Any]:
    labels = {
        "balancedsource.io/name": "orders",
        "spark-role": "driver",
        "sparkoperator.k8s.io/app-name": application,
    }
    metadata = {"name": f"{application}-driver", "namespace": NAMESPACE, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": "Running"}}


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("policy", ["Wait", "Reassign"])
def test_a_source_of_which_no_driver_reports_is_not_well(count: int, policy: str) -> None:
    """Before, the last one that fell silent made everything well."""

    async def play(story: Story) -> None:
        drivers = Drivers(story)
        hosts = [str(number) for number in range(count)]
        await story.begin(parallelism=4, application=with_policy(count, type=policy, after="1m"))
        await drivers.rest(*hosts)
        assert degraded(story)["status"] == "False"

        drivers.absent.update(hosts)
        await play_on(drivers, 600)

        told = degraded(story)
        assert (told["status"], told["reason"]) == ("True", "DriverSilent")
        assert "although orders-1" in told["message"]
        assert story.status.get("lag") is None, "unknown is not 0"
        ready = story.status["conditions"][0]
        assert (ready["type"], ready["status"], ready["reason"]) == (
            "Ready",
            "Unknown",
            "DriverSilent",
        )
        assert "readers read" not in story.status["message"], "that is not known"

        drivers.absent.clear()
        await drivers.rest(*hosts)
        await story.until(
            lambda: [drivers.step(), degraded(story)["status"] == "False"][1], "all to be well"
        )
        drivers.check_each_once()

    played(play)


def test_a_lost_host_stays_lost_when_the_last_one_falls_silent_too() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=with_policy(type="Wait", after="1m"))
        await drivers.rest("0", "1")
        lose(drivers, "1", is_marked=False)
        await play_on(drivers, 100)
        assert degraded(story)["reason"] == "HostLost"

        drivers.absent.add("0")
        await play_on(drivers, 300)

        assert degraded(story)["status"] == "True"
        assert {p["reason"] for p in [degraded(story)]} <= {"DriverSilent", "HostLost"}
        assert "HostLost" in story.events

    played(play)


def test_an_application_that_was_just_resumed_is_given_time_to_report() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=with_policy(1))
        await drivers.rest("0")
        story.patch(suspend=True)
        await play_on(drivers, 600)

        drivers.absent.add("0")
        story.patch(suspend=False)
        await play_on(drivers, 60)
        assert "DriverSilent" not in story.events
        drivers.absent.clear()
        await drivers.rest("0")
        drivers.check_each_once()

    played(play)
