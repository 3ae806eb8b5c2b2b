"""How long a host whose objects were refused is left alone."""

import asyncio

import pytest

from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.runtime.refused_hosts import RefusedHosts
from support import virtual_time
from support.builders import make_spec

REFUSED = RefusedError("exceeded quota", status=403)
SEEN = Decision(state=ApplicationState.NONE)
SPEC, OTHER = make_spec(), make_spec(parallelism=3)


def test_a_refused_host_is_tried_again_after_its_pause() -> None:
    async def play() -> None:
        hosts = RefusedHosts()
        assert not hosts
        decided = hosts.note("1", SPEC, REFUSED, seen=SEEN)
        assert hosts
        await asyncio.sleep(0.25)

        paused = hosts.paused("1", SPEC)
        assert paused is not None
        assert (paused.message, paused.look_again) == (decided.message, 0.75)
        assert hosts.paused("2", SPEC) is None
        await asyncio.sleep(0.75)
        assert hosts.paused("1", SPEC) is None

    virtual_time.run(play())


def test_another_spec_ends_the_pause() -> None:
    async def play() -> None:
        hosts = RefusedHosts()
        hosts.note("1", SPEC, REFUSED, seen=SEEN)
        assert hosts.paused("1", OTHER) is None

    virtual_time.run(play())


@pytest.mark.parametrize("is_known", [True, False])
def test_a_host_whose_objects_are_accepted_has_no_pause(*, is_known: bool) -> None:
    async def play() -> None:
        hosts = RefusedHosts()
        if is_known:
            hosts.note("1", SPEC, REFUSED, seen=SEEN)
        hosts.clear("1")
        assert not hosts
        assert hosts.paused("1", SPEC) is None
        assert hosts.note("1", SPEC, REFUSED, seen=SEEN).look_again == 1.0

    virtual_time.run(play())
