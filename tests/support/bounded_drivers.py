"""Drivers of a bounded source on several hosts: a query ends when its host has read everything."""

from collections import Counter
from typing import Any

from balanced_source.documents import assignment as assignment_document
from balanced_source.host import is_finished
from balanced_source_operator.resources.kinds import KUBEFLOW_APPLICATION
from support.builders import spec_json
from support.cluster_story import NAMESPACE, Story
from support.host_drivers import Drivers, running
from support.lost_hosts import SOURCE
from support.world import UID, Driver

SLOW = 30
"""Steps in which a slow host reads one record of each of its splits."""


class Ending(Drivers):
    """Each query ends, and its application completes, when its host has read everything.

    Attributes:
        slow: hosts that read one record of each split in `SLOW` steps.
        ended: how often the query of each host has ended.
        launched: how many applications of each host were started.
    """

    def __init__(self, story: Story, *slow: str) -> None:
        super().__init__(story)
        story.broker.is_bounded = True
        self.slow = set(slow)
        self.ended: Counter[str] = Counter()
        self.launched: Counter[str] = Counter()
        self._steps = 0

    def step(self) -> None:
        self._steps += 1
        super().step()

    def _run(self, host: str, application: str) -> None:
        if self._state(application) == "COMPLETED":
            return
        if self._state(application) is None:
            self.launched[host] += 1
        driver = self.of.get(host)
        if host in self.slow and driver is not None and self._state(application) is not None:
            self._run_slowly(driver)
        else:
            super()._run(host, application)
        self._end_query(host, application)

    def _run_slowly(self, driver: Driver) -> None:
        driver.see_assignment()
        more = int(self._steps % SLOW == 0)
        held = driver.host.durable.positions
        ends = self.story.broker.ends
        upto = {split: min(ends[split], (held.get(split) or 0) + more) for split in ends}
        driver.batch(upto=upto)
        driver.report()

    def _end_query(self, host: str, application: str) -> None:
        driver = self.of[host]
        text = driver.store.assignment
        if text is None or driver.committed != len(driver.offsets) or not driver.offsets:
            return
        if is_finished(driver.host.durable, assignment_document.decode(text, source=UID)):
            driver.batch()  # nothing is left: it notes what is committed
            driver.report()
            self.ended[host] += 1
            self.complete(application)

    def complete(self, application: str) -> None:
        """The Spark operator sees that the driver has ended in order."""
        done = {"status": {"applicationState": {"state": "COMPLETED"}}}
        self.story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, application, done)

    def _state(self, application: str) -> str | None:
        found = self.story.server.find(KUBEFLOW_APPLICATION, NAMESPACE, application) or {}
        state: str | None = found.get("status", {}).get("applicationState", {}).get("state")
        return state

    def states(self) -> dict[str, str | None]:
        """Return the state of each host's application."""
        return {SOURCE.host_of(name): self._state(name) for name in running(self.story)}

    def uids(self, host: str) -> dict[str, str]:
        """Return the uid of each application of a host, by its name."""
        found = self.story.server.select(KUBEFLOW_APPLICATION, NAMESPACE)
        named = {m["metadata"]["name"]: str(m["metadata"]["uid"]) for m in found}
        return {n: uid for n, uid in named.items() if SOURCE.host_of(n) == host}

    def images(self) -> dict[str, str]:
        """Return the image of each host's application."""
        find = self.story.server.find
        found = {n: find(KUBEFLOW_APPLICATION, NAMESPACE, n) or {} for n in running(self.story)}
        return {SOURCE.host_of(n): str(a["spec"]["image"]) for n, a in found.items()}


def bounded_source() -> dict[str, Any]:
    """Return the source of a spec that ends at the newest records."""
    return {"kafka": {**spec_json()["source"]["kafka"], "stoppingOffsets": {"type": "Latest"}}}


def condition(story: Story, kind: str) -> tuple[str, str]:
    """Return status and reason of a condition."""
    found = next(c for c in story.status["conditions"] if c["type"] == kind)
    return found["status"], found["reason"]
