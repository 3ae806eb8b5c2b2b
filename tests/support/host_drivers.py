"""Drivers of all hosts of a story: each one starts when its application is there."""

from collections import Counter
from typing import Any

from balanced_source.api import SplitId
from balanced_source.documents.storage import base_of
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import KUBEFLOW_APPLICATION
from support.builders import spec_json
from support.cluster_story import NAMESPACE, SPEC, Documents, Story
from support.world import UID, Driver


def application(**hosts: Any) -> dict[str, Any]:
    """The application of a spec, on so many hosts."""
    return {**spec_json(**SPEC)["application"], "hosts": hosts}


def base(host: str) -> str:
    return base_of("orders", host, uid=UID)


class Drivers:
    """The drivers of a story's hosts; each one starts when its application is there."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.of: dict[str, Driver] = {"0": story.driver}
        self.absent: set[str] = set()

    def step(self) -> None:
        """Launch what is to run, and let each driver run a micro-batch."""
        for manifest in self.story.server.select(KUBEFLOW_APPLICATION, NAMESPACE):
            name = manifest["metadata"]["name"]
            host = Identity(namespace=NAMESPACE, name="orders", uid=UID).host_of(name)
            if host not in self.absent:
                self._run(host, name)

    def _run(self, host: str, application: str) -> None:
        store: Any = Documents(self.story.server, host)
        driver = self.of.setdefault(host, Driver(store, self.story.broker, host))
        state = (self.story.server.find(KUBEFLOW_APPLICATION, NAMESPACE, application) or {}).get(
            "status"
        )
        if state is None:
            running = {"status": {"applicationState": {"state": "RUNNING"}}}
            self.story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, application, running)
            driver.start()
        driver.see_assignment()
        driver.batch()
        driver.report()

    async def rest(self, *hosts: str, splits: int = 8) -> None:
        """Wait until exactly these hosts read so many splits, and the operator knows."""

        def is_done() -> bool:
            self.step()
            status = self.story.status
            held = {
                host: len(self.of[host].host.durable.owners) for host in hosts if host in self.of
            }
            return (
                len(held) == len(hosts)
                and sum(held.values()) == splits
                and status.get("acknowledgedEpoch") == status.get("epoch")
                and sorted(h["name"] for h in status.get("hosts", []))
                == (sorted(hosts) if len(hosts) > 1 else [])
                and len(self.story.server.select(KUBEFLOW_APPLICATION, NAMESPACE)) == len(hosts)
            )

        await self.story.until(
            is_done, f"hosts {hosts} to read {splits} splits: {self.story.status}"
        )

    def check_each_once(self) -> None:
        assert "InternalError" not in self.story.events, (
            "the operator failed, and recovered from the stored state"
        )
        got = Counter(record for driver in self.of.values() for record in driver.delivered)
        assert set(got.values()) == {1}
        ends: dict[SplitId, int] = self.story.broker.ends
        assert set(got) == {(split, offset) for split, end in ends.items() for offset in range(end)}


class Busy(Drivers):
    """Drivers of a source that gets records all the time."""

    def __init__(self, story: Story) -> None:
        super().__init__(story)
        self.steps = 0

    def step(self) -> None:
        splits = sorted(self.story.broker.ends)
        self.story.broker.ends[splits[self.steps % len(splits)]] += 1
        self.steps += 1
        super().step()

    def reads(self, host: str) -> int:
        """Return how many splits a host reads."""
        return len(self.of[host].host.durable.owners) if host in self.of else 0

    async def settle(self, *hosts: str, splits: int = 8) -> None:
        """Wait until these hosts read so many splits, and everything in them."""
        await self.rest(*hosts, splits=splits)
        # No more records: what was added is read before it is counted.
        for _ in range(5):
            super().step()


def running(story: Story) -> list[str]:
    """Names of the applications that there are."""
    found = story.server.select(KUBEFLOW_APPLICATION, NAMESPACE)
    return [manifest["metadata"]["name"] for manifest in found]


def images(story: Story) -> set[str]:
    """Images of the applications that there are."""
    return {m["spec"]["image"] for m in story.server.select(KUBEFLOW_APPLICATION, NAMESPACE)}
