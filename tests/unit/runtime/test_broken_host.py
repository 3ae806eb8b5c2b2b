"""A host that cannot start, while changed settings restart the other hosts in turn."""

from typing import Any, Final

import pytest

from balanced_source_operator.resources.kinds import EVENT
from support import host_drivers
from support.broken_hosts import BrokenHosts
from support.cluster_story import NAMESPACE, Story
from support.played_story import played
from support.rolls import AFTER_NEXT, NEXT

HOSTS: Final = ("0", "1", "2")
AFTER: Final = {"rollbackAfter": "1m"}
NEVER: Final = {"rollbackAfter": "0"}
AT_ONCE: Final = {"type": "Reassign", "guarantee": "AtLeastOnce", "after": "1m"}


def on_hosts(count: int = 3, **changes: Any) -> dict[str, Any]:
    return {**host_drivers.application(count=count), **changes}


def message(story: Story, condition: str) -> str:
    found = (c["message"] for c in story.status["conditions"] if c["type"] == condition)
    return next(found, "")


def said(story: Story) -> str:
    return "; ".join(event["message"] for event in story.server.select(EVENT, NAMESPACE))


async def broken(story: Story, host: str, state: str, **changes: Any) -> BrokenHosts:
    """Let a source read, then break one of its hosts until that is known."""
    drivers = BrokenHosts(story, state)
    await story.begin(parallelism=6, application=on_hosts(**changes))
    await drivers.rest(*HOSTS)
    drivers.works = lambda name, _: name != host
    drivers.lose(host)
    await drivers.pass_time(400)
    return drivers


async def end(drivers: BrokenHosts, host: str) -> None:
    """Repair a host, and check that each record was delivered once."""
    drivers.works = lambda *_: True
    drivers.lose(host)
    await drivers.settle(*HOSTS)
    drivers.check_each_once()


@pytest.mark.parametrize(
    ("host", "state", "policy"), [("0", "FAILED", {}), ("1", "SUBMITTED", AT_ONCE)]
)
def test_a_host_that_broke_before_does_not_keep_the_others_on_old_settings(
    host: str, state: str, policy: dict[str, Any]
) -> None:
    async def play(story: Story) -> None:
        drivers = await broken(story, host, state, hostLossPolicy=policy, restart=AFTER)
        story.patch(application={"image": NEXT})
        await drivers.until(lambda: drivers.images().get(host) == NEXT, "it first", within=10)
        drivers.most_stopped = 0
        await drivers.pass_time(100)
        assert [n for n, image in drivers.images().items() if image == NEXT] == [host], (
            "it may work with the new settings, and then reads while the others restart"
        )
        assert "host" in message(story, "RestartPending")
        await story.operators.pop().stop()
        story.start_operator()
        await drivers.until(
            lambda: set(drivers.images().values()) == {NEXT}, "the others", within=1500
        )

        assert drivers.most_stopped == 1
        assert f"Host {host} did not run before its settings changed" in said(story)
        assert "RolledBack" not in story.events
        await drivers.until(lambda: f'"{NEXT}"' in story.status["settings"], "the new settings")
        if not policy:
            await end(drivers, host)

    played(play)


def test_a_host_that_has_never_started_does_not_keep_the_others_on_old_settings() -> None:
    async def play(story: Story) -> None:
        drivers = BrokenHosts(story)
        drivers.works = lambda name, _: name != "1"
        await story.begin(parallelism=6, application=on_hosts(restart=AFTER))
        await drivers.until(lambda: "healthy" in story.status.get("settings", ""), "healthy ones")
        drivers.most_stopped = 0
        story.patch(application={"image": NEXT})
        await drivers.until(lambda: set(drivers.images().values()) == {NEXT}, "all hosts")

        assert drivers.most_stopped == 1
        assert "RolledBack" not in story.events
        await end(drivers, "1")

    played(play)


def test_a_host_that_new_settings_break_keeps_the_others_until_the_user_changes_the_nonce() -> None:
    async def play(story: Story) -> None:
        drivers = BrokenHosts(story)
        await story.begin(parallelism=6, application=on_hosts(restart=NEVER))
        await drivers.rest(*HOSTS)
        drivers.works = lambda name, image: (name, image) != ("0", NEXT)
        drivers.most_stopped = 0
        story.patch(application={"image": NEXT})
        await drivers.pass_time(900)
        assert [n for n, image in drivers.images().items() if image == NEXT] == ["0"]
        waits = message(story, "RestartPending")
        assert "It restarts when host 0 runs again. Host 0 has not come back" in waits
        assert "change spec.application.restart.nonce" in waits

        story.patch(application={"restart": {"nonce": 1}})
        await drivers.until(lambda: set(drivers.images().values()) == {NEXT}, "the others")
        assert drivers.most_stopped == 1
        await end(drivers, "0")

    played(play)


def test_settings_that_break_a_host_that_ran_are_given_up_beside_a_broken_one() -> None:
    async def play(story: Story) -> None:
        drivers = await broken(story, "1", "SUBMITTED", restart=AFTER)
        drivers.works = lambda name, image: name != "1" and image != NEXT
        story.patch(application={"image": NEXT})
        await drivers.until(lambda: "RolledBack" in story.events, "the rollback", within=1500)
        assert "orders-1 was not healthy after 60 s" in message(story, "Degraded")
        await drivers.until(
            lambda: NEXT not in drivers.images().values(), "the former settings", within=100
        )
        await end(drivers, "1")

    played(play)


def test_the_only_host_tells_of_new_settings_also_if_it_was_broken_before() -> None:
    async def play(story: Story) -> None:
        drivers = BrokenHosts(story)
        await story.begin(parallelism=2, application=on_hosts(1, restart=AFTER))
        await drivers.rest("0")
        drivers.works = lambda *_: False
        drivers.lose("0")
        await drivers.pass_time(400)
        story.patch(application={"image": AFTER_NEXT})
        await drivers.until(lambda: "RolledBack" in story.events, "the rollback", within=200)

    played(play)
