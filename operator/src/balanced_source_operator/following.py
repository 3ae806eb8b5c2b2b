"""Runs what follows the BalancedSources, and notices when it does not follow them.

kopf looks once, as it starts, for the resources that the API server serves, and again when it hears
that a definition has changed. An API server that is starting may leave out ours for a moment, and
without the right to watch definitions (roles in namespaces) one that is installed later is never
heard of. kopf also gives up a watch that is refused, or whose definition is deleted, and starts it
no more. The operator would serve nothing, or no new source, and look well.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import structlog

from balanced_source_operator.ending import end_now
from balanced_source_operator.health import Health
from balanced_source_operator.kube.port import KubernetesError
from balanced_source_operator.resources.kinds import BALANCED_SOURCE

LOOK: Final = 10.0
"""Seconds between two looks. A follower that has just started, or was just told of a definition,
has that long to take it up."""

MISSED: Final = 2
"""Looks in a row in which a follower has missed the resource, until another takes its place."""

END: Final = 20.0
"""Seconds in which a follower that was told to leave must have ended."""

NOT_INSTALLED: Final = (
    f"The custom resource definition {BALANCED_SOURCE.plural}.{BALANCED_SOURCE.group} is not"
    " installed. Install it with the Helm chart (crds.install), or run: balanced-source crd |"
    " kubectl apply --server-side -f -. The operator looks again automatically."
)

log = structlog.get_logger(__name__)


class SourceFollower(Protocol):
    """Follows the BalancedSources."""

    def follows(self) -> bool:
        """Return whether the resource is watched now, so that its objects are told."""
        ...

    async def run(self, leave: asyncio.Event) -> None:
        """Follow until told to leave."""
        ...


class Following:
    """Follows the sources until the process is told to stop.

    Args:
        make: makes a follower; a new one replaces one that has missed the resource.
        is_served: returns whether the API server serves the resource; raises `KubernetesError` if
            it does not say.
        health: is told while the resource is not served.
        stop: is set when the process is told to stop.
        end: ends the process, should a follower not end.
    """

    def __init__(
        self,
        make: Callable[[], SourceFollower],
        *,
        is_served: Callable[[], Awaitable[bool]],
        health: Health,
        stop: asyncio.Event,
        end: Callable[[], None] = end_now,
    ) -> None:
        self._make = make
        self._is_served = is_served
        self._health = health
        self._stop = stop
        self._end = end

    async def run(self) -> None:
        """Follow them. Returns also if a follower ends by itself."""
        while await self._served():
            follower, leave = self._make(), asyncio.Event()
            watch = asyncio.create_task(self._replace(follower, leave))
            try:
                await follower.run(leave)
            finally:
                watch.cancel()
                await asyncio.gather(watch, return_exceptions=True)
            if not leave.is_set():
                return

    async def _served(self) -> bool:
        """Wait until the resource is served; return False when the process is told to stop."""
        while not self._stop.is_set():
            try:
                found = await self._is_served()
                self._health.note_definition("" if found else NOT_INSTALLED)
            except KubernetesError as error:
                found = False
                self._health.note_definition(
                    f"The API server does not say which kinds it serves: {error}"
                )
            if found:
                return True
            await self._pause()
        return False

    async def _replace(self, follower: SourceFollower, leave: asyncio.Event) -> None:
        """Tell the follower to leave when another must take its place, or the process stops."""
        missed = 0
        while missed < MISSED and not await self._pause():
            is_missed = not follower.follows() and await self._is_missed()
            missed = missed + 1 if is_missed else 0
        leave.set()
        # The end of a process that was told to stop is bounded already.
        if not self._stop.is_set():
            log.warning("the sources are not followed although their kind is served: starting over")
            await asyncio.sleep(END)
            # Its tasks may be in any state, and a new process has none of them.
            log.error("what follows the sources does not end: ending the process", seconds=END)
            self._end()

    async def _is_missed(self) -> bool:
        """Whether there is a resource that is not followed. No answer says nothing.

        Who follows it says so: kopf and the informers try again and log it.
        """
        try:
            found = await self._is_served()
        except KubernetesError:
            return False
        self._health.note_definition("" if found else NOT_INSTALLED)
        return found

    async def _pause(self) -> bool:
        """Wait until it is time for the next look; return whether the process is told to stop."""
        try:
            async with asyncio.timeout(LOOK):
                await self._stop.wait()
        except TimeoutError:
            return False
        return True
