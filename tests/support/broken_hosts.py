"""Drivers of which some cannot start, for stories about what the other hosts do meanwhile."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final

from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import KUBEFLOW_APPLICATION
from support.cluster_story import DEADLINE, NAMESPACE, Story
from support.host_drivers import Busy
from support.virtual_time import clock
from support.world import UID

STEP: Final = 5.0
"""Seconds between micro-batches: these stories wait for deadlines of many minutes."""


class BrokenHosts(Busy):
    """Drivers of hosts that start only with some images; the Spark operator says a state else.

    Attributes:
        works: returns whether the driver of a host comes up with an image.
        state: that the Spark operator gives to an application whose driver does not come up.
        most_stopped: largest number of hosts that could run, and did not at the same time.
    """

    def __init__(self, story: Story, state: str = "SUBMITTED") -> None:
        super().__init__(story)
        self.state = state
        self.most_stopped = 0
        self.works: Callable[[str, str], bool] = lambda *_: True

    def step(self) -> None:
        """Note how many of the hosts that could run do not, then run micro-batches."""
        found = dict(self._applications())
        stopped = [
            host
            for host in (h["name"] for h in self.story.status.get("hosts", ()))
            if host in self.of
            and (host not in found or found[host].get("status") is None)
            and self.works(host, found[host]["spec"]["image"] if host in found else "")
        ]
        self.most_stopped = max(self.most_stopped, len(stopped))
        super().step()

    def _run(self, host: str, application: str) -> None:
        found = self.story.server.find(KUBEFLOW_APPLICATION, NAMESPACE, application)
        assert found is not None
        if self.works(host, found["spec"]["image"]):
            super()._run(host, application)
        elif found.get("status") is None:
            self._say(application, self.state)

    def _say(self, application: str, state: str) -> None:
        status = {"applicationState": {"state": state, "errorMessage": "no such image"}}
        self.story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, application, {"status": status})

    def _applications(self) -> Iterator[tuple[str, dict[str, Any]]]:
        source = Identity(namespace=NAMESPACE, name="orders", uid=UID)
        for manifest in self.story.server.select(KUBEFLOW_APPLICATION, NAMESPACE):
            yield source.host_of(manifest["metadata"]["name"]), manifest

    def images(self) -> dict[str, str]:
        """Return the image of the application of each host that has one."""
        return {host: manifest["spec"]["image"] for host, manifest in self._applications()}

    def lose(self, host: str) -> None:
        """Let the application of a host fail."""
        for name, manifest in list(self._applications()):
            if name == host:
                self._say(manifest["metadata"]["name"], "FAILED")

    async def until(
        self, condition: Callable[[], Any], what: str, *, within: float = DEADLINE
    ) -> None:
        """Let time pass, with a micro-batch of each driver every few seconds, until it is so."""
        due = clock() + within
        while not condition():
            if clock() >= due:
                raise TimeoutError(f"{what}; status {self.story.status}")
            await asyncio.sleep(STEP)
            self.step()

    async def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        due = clock() + seconds
        await self.until(lambda: clock() >= due, "time to pass", within=seconds + STEP)
