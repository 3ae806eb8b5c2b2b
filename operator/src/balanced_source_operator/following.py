"""Runs what follows the BalancedSources, and notices when it does not follow them.

kopf looks once, as it starts, for the resources that the API server serves, and again when it hears
that a definition has changed. An API server that is starting may leave out ours for a moment, and
without the right to watch definitions (roles in namespaces) one that is installed later is never
heard of. The operator would serve nothing, and look well.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import structlog

from balanced_source_operator.health import Health
from balanced_source_operator.kube.port import KubernetesError
from balanced_source_operator.resources.kinds import BALANCED_SOURCE

LOOK: Final = 10.0
"""Seconds between two looks. A follower that has just started, or was just told of a definition,
has that long to take it up."""

NOT_INSTALLED: Final = (
    f"The custom resource definition {BALANCED_SOURCE.plural}.{BALANCED_SOURCE.group} is not"
    " installed. Install it with the Helm chart (crds.install), or run: balanced-source crd |"
    " kubectl apply --server-side -f -. The operator looks again automatically."
)

log = structlog.get_logger(__name__)


class SourceFollower(Protocol):
    """Follows the BalancedSources."""

    @property
    def follows(self) -> bool:
        """Whether the resource is known, so that its objects are told."""
        ...

    async def run(self, leave: asyncio.Event) -> None:
        """Follow until told to leave."""
        ...


async def follow(
    make: Callable[[], SourceFollower],
    *,
    is_served: Callable[[], Awaitable[bool]],
    health: Health,
    stop: asyncio.Event,
) -> None:
    """Follow the sources until the process is told to stop.

    Args:
        make: makes a follower; a new one replaces one that has missed the resource.
        is_served: returns whether the API server serves the resource; raises `KubernetesError` if
            it does not say.
        health: is told while the resource is not served.
        stop: is set when the process is told to stop.
    """
    while await _served(is_served, health, stop):
        follower, leave = make(), asyncio.Event()
        watch = asyncio.create_task(_watch(follower, leave, is_served, health, stop))
        try:
            await follower.run(leave)
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
        if not leave.is_set():
            return


async def _served(
    is_served: Callable[[], Awaitable[bool]], health: Health, stop: asyncio.Event
) -> bool:
    """Wait until the resource is served; return False when the process is told to stop."""
    while not stop.is_set():
        try:
            found = await is_served()
            health.note_definition("" if found else NOT_INSTALLED)
        except KubernetesError as error:
            found = False
            health.note_definition(f"The API server does not say which kinds it serves: {error}")
        if found:
            return True
        await _pause(stop)
    return False


async def _watch(
    follower: SourceFollower,
    leave: asyncio.Event,
    is_served: Callable[[], Awaitable[bool]],
    health: Health,
    stop: asyncio.Event,
) -> None:
    """Tell the follower to leave when the process stops, or when it has missed the resource."""
    was_missed = False
    while not await _pause(stop):
        is_missed = not follower.follows and await _is_missed(is_served, health)
        if is_missed and was_missed:
            log.warning("the sources are not followed although their kind is served: starting over")
            break
        was_missed = is_missed
    leave.set()


async def _is_missed(is_served: Callable[[], Awaitable[bool]], health: Health) -> bool:
    """Whether there is a resource that is not followed. No answer says nothing, and stays unsaid.

    Who follows it says so: kopf and the informers try again and log it.
    """
    try:
        found = await is_served()
    except KubernetesError:
        return False
    health.note_definition("" if found else NOT_INSTALLED)
    return found


async def _pause(stop: asyncio.Event) -> bool:
    """Wait until it is time for the next look; return whether the process is told to stop."""
    try:
        async with asyncio.timeout(LOOK):
            await stop.wait()
    except TimeoutError:
        return False
    return True
