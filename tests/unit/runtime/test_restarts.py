"""Changed settings visibly wait for what the policy says; stops and failures do not."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import KUBEFLOW_APPLICATION, ROLE
from balanced_source_operator.runtime.restart_slots import PATIENCE, RestartSlots
from support.builders import spec_json
from support.cluster_story import NAMESPACE, SPEC, Story
from support.host_drivers import Drivers, base
from support.played_story import played
from support.virtual_time import clock


def application(**changes: Any) -> dict[str, Any]:
    return {**spec_json(**SPEC)["application"], **changes}


def pending(story: Story) -> dict[str, Any]:
    found = (c for c in story.status.get("conditions", []) if c["type"] == "RestartPending")
    return next(found, {"reason": "", "message": ""})


def image(story: Story, name: str = "orders-1") -> str:
    found = story.server.find(KUBEFLOW_APPLICATION, NAMESPACE, name)
    return str(found["spec"]["image"]) if found is not None else ""


async def steps(story: Story, drivers: Drivers, seconds: float) -> None:
    """Let the drivers read for a while."""
    due = clock() + seconds
    await story.until(lambda: [drivers.step(), clock() >= due][1], "time to pass")


async def reading(story: Story, **changes: Any) -> Drivers:
    drivers = Drivers(story)
    await story.begin(parallelism=2, application=application(**changes))
    await drivers.rest("0")
    return drivers


ON_NONCE = {"policy": "OnNonce"}


def test_a_change_waits_for_the_nonce_over_a_restart_of_the_operator() -> None:
    async def play(story: Story) -> None:
        drivers = await reading(story, restart=ON_NONCE)
        story.patch(application={"image": "next"})
        await story.until(lambda: pending(story)["reason"] == "WaitingForNonce", "the condition")
        assert "image: 'balanced-source/spark:4.2.0' → 'next'" in pending(story)["message"]

        await story.operators.pop().stop()
        story.start_operator()
        await steps(story, drivers, 60)
        assert pending(story)["reason"] == "WaitingForNonce"
        assert story.applications == ["orders-1"]
        ready = next(c for c in story.status["conditions"] if c["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("True", "Reading")

        story.patch(application={"restart": {"nonce": 1}})
        await story.until(lambda: [drivers.step(), image(story) == "next"][1], "the restart")
        await drivers.rest("0")
        assert pending(story)["reason"] == ""
        await steps(story, drivers, 60)
        assert story.applications == ["orders-1", "orders-1"], "the nonce restarts once"
        drivers.check_each_once()

    played(play)


def test_a_change_that_is_taken_back_needs_no_restart() -> None:
    async def play(story: Story) -> None:
        drivers = await reading(story, restart=ON_NONCE)
        story.patch(application={"image": "next"})
        await story.until(lambda: pending(story)["reason"] == "WaitingForNonce", "the condition")

        story.patch(application={"image": "balanced-source/spark:4.2.0"})
        await story.until(lambda: pending(story)["reason"] == "", "the condition to go")
        await steps(story, drivers, 60)
        assert story.applications == ["orders-1"]

    played(play)


def test_a_new_nonce_restarts_without_a_change() -> None:
    async def play(story: Story) -> None:
        drivers = await reading(story)
        story.patch(application={"restart": {"nonce": 1}})
        await story.until(lambda: [drivers.step(), len(story.applications) == 2][1], "the restart")
        await drivers.rest("0")
        story.patch(application={"restart": {"nonce": None}})
        await steps(story, drivers, 30)
        assert len(story.applications) == 2
        drivers.check_each_once()

    played(play)


def test_a_change_waits_for_the_window() -> None:
    async def play(story: Story) -> None:
        begin = datetime.fromtimestamp(clock(), UTC).replace(second=0) + timedelta(minutes=5)
        window = {"start": f"{begin:%H:%M}", "duration": "10m"}
        drivers = await reading(story, restart={"policy": "Window", "window": window})
        story.patch(application={"image": "next"})
        await story.until(lambda: pending(story)["reason"] == "WaitingForWindow", "the condition")
        assert f"begins at {begin:%Y-%m-%dT%H:%MZ}" in pending(story)["message"]
        assert clock() < begin.timestamp()

        await story.until(lambda: [drivers.step(), image(story) == "next"][1], "the restart")
        assert 0 <= clock() - begin.timestamp() < 10
        await drivers.rest("0")
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("stopped_by", ["suspend", "delete", "failure"])
def test_a_restart_for_another_cause_uses_the_newest_settings(stopped_by: str) -> None:
    async def play(story: Story) -> None:
        drivers = await reading(story, restart=ON_NONCE)
        story.patch(application={"image": "next"})
        await story.until(lambda: pending(story)["reason"] == "WaitingForNonce", "the condition")
        match stopped_by:
            case "suspend":
                story.patch(suspend=True)
                await story.until(lambda: image(story) == "", "the stop")
                story.patch(suspend=False)
            case "delete":
                story.server.remove(KUBEFLOW_APPLICATION, NAMESPACE, "orders-1")
            case _:
                failed = {"status": {"applicationState": {"state": "FAILED"}}}
                story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, "orders-1", failed)

        await story.until(lambda: image(story) == "next", "the new application")
        await drivers.rest("0")
        assert pending(story)["reason"] == ""

    played(play)


def test_hosts_restart_in_turn_when_the_nonce_changes() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(
            parallelism=4, application=application(hosts={"count": 2}, restart=ON_NONCE)
        )
        await drivers.rest("0", "1")
        story.patch(application={"image": "next"})
        await story.until(lambda: "; also " in pending(story)["message"], "both hosts to wait")

        drivers.absent.add("0")
        story.patch(application={"restart": {"nonce": 1}})
        await story.until(lambda: [drivers.step(), image(story) == "next"][1], "the first host")
        await steps(story, drivers, 30)
        assert pending(story)["reason"] == "ReplacingApplication"
        assert "It restarts when host 0 runs again" in pending(story)["message"]
        assert image(story, f"{base('1')}-1") != "next"

        drivers.absent.clear()
        await story.until(
            lambda: [drivers.step(), image(story, f"{base('1')}-1") == "next"][1], "the second host"
        )
        await drivers.rest("0", "1")
        assert pending(story)["reason"] == ""
        drivers.check_each_once()

    played(play)


def source(number: int) -> Identity:
    return Identity(namespace="other", name=f"s{number}", uid=str(number))


def test_only_so_many_sources_restart_at_once() -> None:
    async def play(story: Story) -> None:
        drivers = await reading(story)
        slots = story.operators[0].restarts
        others = [source(number) for number in range(slots.limit)]
        assert all(slots.take(other, lambda: None) for other in others)

        story.patch(application={"image": "next"})
        await story.until(
            lambda: pending(story)["reason"] == "WaitingForOtherSources", "the condition"
        )
        assert story.applications == ["orders-1"]

        at = clock()
        slots.release(others[0])
        await story.until(lambda: [drivers.step(), image(story) == "next"][1], "the restart")
        assert clock() - at < 2, "it is woken"
        mine = Identity(namespace=NAMESPACE, name="orders", uid="uid-1")
        await story.until(
            lambda: [drivers.step(), not slots.has(mine)][1], "the slot to be free again"
        )

    played(play)


def test_an_operator_that_starts_counts_restarts_that_are_under_way() -> None:
    async def play(story: Story) -> None:
        drivers = await reading(story)
        drivers.absent.add("0")
        story.patch(application={"image": "next"})
        await story.until(lambda: image(story) == "next", "the restart to begin")
        await story.operators.pop().stop()
        operator = story.start_operator()

        mine = Identity(namespace=NAMESPACE, name="orders", uid="uid-1")
        await story.until(lambda: operator.restarts.has(mine), "its slot")
        drivers.absent.clear()
        await story.until(
            lambda: [drivers.step(), not operator.restarts.has(mine)][1], "the slot to be free"
        )

    played(play)


def test_a_source_that_never_runs_again_delays_the_others_for_ten_minutes_only() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        slots = RestartSlots(limit=1)
        assert slots.take(source(1), lambda: None)
        assert not slots.take(source(2), lambda: None)
        due = clock() + PATIENCE - 60
        await story.until(lambda: clock() >= due, "most of the time")
        assert not slots.take(source(2), lambda: None)
        due += 60
        await story.until(lambda: clock() >= due, "the rest")
        assert slots.take(source(2), lambda: None)

    played(play)


async def queued(story: Story) -> tuple[RestartSlots, list[int]]:
    """Let the source wait for another one, and a third one wait behind it.

    Returns:
        The queue, and a list that shows when the third one is woken.
    """
    slots, woken = story.operators[0].restarts, list[int]()
    slots.limit = 1
    assert slots.take(source(1), lambda: None)
    story.patch(application={"image": "next"})
    await story.until(lambda: pending(story)["reason"] == "WaitingForOtherSources", "the condition")
    assert not slots.take(source(2), lambda: woken.append(2))
    return slots, woken


def test_a_source_that_fails_while_it_waits_delays_no_other_one() -> None:
    async def play(story: Story) -> None:
        drivers = await reading(story)
        slots, woken = await queued(story)

        drivers.absent.add("0")
        failed = {"status": {"applicationState": {"state": "FAILED"}}}
        story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, "orders-1", failed)
        await story.until(lambda: image(story) == "next", "the new settings without a slot")
        slots.release(source(1))
        assert woken[-1:] == [2]
        assert slots.take(source(2), lambda: None)

    played(play)


def test_a_source_whose_turns_fail_while_it_waits_delays_no_other_one() -> None:
    async def play(story: Story) -> None:
        drivers = await reading(story)
        slots, woken = await queued(story)

        refusal = RefusedError("roles: may not", status=403)
        allow = story.server.deny(refusal, kind=ROLE, verbs=("get", "apply"))
        story.server.remove(ROLE, NAMESPACE, "orders-documents")
        await steps(story, drivers, 60)
        slots.release(source(1))
        assert woken[-1:] == [2]
        assert slots.take(source(2), lambda: None)

        allow()
        slots.release(source(2))
        await story.until(lambda: [drivers.step(), image(story) == "next"][1], "the restart")

    played(play)


def test_sources_wait_in_the_order_in_which_they_came() -> None:
    async def play(_: Story) -> None:
        slots, woken = RestartSlots(limit=2), list[int]()
        assert slots.take(source(1), lambda: None)
        assert slots.take(source(2), lambda: None)
        assert [slots.take(source(n), lambda n=n: woken.append(n)) for n in (3, 4, 5)] == [
            False,
            False,
            False,
        ]

        slots.release(source(1))
        assert woken == [3]
        assert not slots.take(source(4), lambda: None), "it is not its turn"
        slots.release(source(3))
        assert slots.take(source(4), lambda: None), "the one before it does not want to any more"
        assert slots.take(source(4), lambda: None), "asking again takes nothing more"
        assert not slots.take(source(5), lambda: None)

    played(play)


def test_a_source_that_gives_up_its_turn_wakes_the_next_one() -> None:
    slots, woken = RestartSlots(limit=1), list[int]()

    async def play(_: Story) -> None:
        for number in (1, 2, 3):
            slots.take(source(number), lambda number=number: woken.append(number))
        slots.release(source(1))
        assert woken == [2]

        slots.release(source(2))
        assert woken == [2, 3], "it was woken, and does not want to restart any more"
        slots.release(source(9))
        assert woken == [2, 3], "a source that neither has a slot nor waits frees nothing"
        assert slots.take(source(3), lambda: None)

    played(play)


def test_a_source_that_stops_waiting_while_no_slot_is_free_wakes_no_other_one() -> None:
    slots, woken = RestartSlots(limit=1), list[int]()

    async def play(_: Story) -> None:
        for number in (1, 2, 3):
            slots.take(source(number), lambda number=number: woken.append(number))
        slots.release(source(2))
        assert woken == []

    played(play)
