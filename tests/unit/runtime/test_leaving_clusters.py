"""A cluster is taken out: the status says so as long as a micro-batch may still read it."""

from collections.abc import Mapping
from typing import Any

import pytest

from balanced_source_operator.resources.kinds import BALANCED_SOURCE, ResourceKind
from support.cluster_story import Story
from support.host_drivers import Drivers, application
from support.played_story import played

MAIN = {"name": "main", "bootstrapServers": "broker:9092"}
DR = {"name": "dr", "bootstrapServers": "dr:9092"}


def source(*clusters: Mapping[str, Any]) -> dict[str, Any]:
    kafka = {
        "clusters": list(clusters),
        "subscription": {"topics": ["orders"]},
        "discovery": {"interval": "1s"},
        "removedClusterRetention": "1h",
    }
    return {"kafka": kafka}


def progressing(story: Story) -> Mapping[str, Any]:
    found = story.status.get("conditions", [])
    return next((c for c in found if c["type"] == "Progressing"), {})


class BusyDrivers(Drivers):
    """Drivers of which some are in a micro-batch that does not end.

    They note each status that tells that nothing is in progress while one of them still names the
    cluster `dr` in a micro-batch that is not committed.
    """

    def __init__(self, story: Story) -> None:
        super().__init__(story)
        self.busy: set[str] = set()
        self.wrong: list[str] = []
        story.server.watch(self._check)

    def begin(self, *hosts: str) -> None:
        """Let hosts plan a micro-batch with new records of all clusters, and not end it."""
        ends = self.story.broker.ends
        self.story.broker.ends = {split: end + 2 for split, end in ends.items()}
        for host in hosts:
            assert self.of[host].batch(die="delivered")
        self.busy |= {*hosts}

    def finish(self, host: str) -> None:
        """The micro-batch of a host is committed."""
        self.of[host].committed += 1
        self.busy.discard(host)

    def unfinished(self, host: str) -> bool:
        """Whether the driver would repeat a micro-batch with the cluster, if it started again."""
        driver = self.of[host]
        return any("dr" in str(offset) for offset in driver.offsets[driver.committed :])

    def _run(self, host: str, application: str) -> None:
        if host in self.busy:
            self.of[host].see_assignment()
            self.of[host].report()
        else:
            super()._run(host, application)

    def _check(self, kind: ResourceKind, event: str, manifest: Mapping[str, Any]) -> None:
        if kind != BALANCED_SOURCE or event == "DELETED":
            return
        state = progressing(self.story)
        is_stable = state.get("status") == "False"
        # as `kubectl wait` compares them
        is_of_spec = state.get("observedGeneration") == manifest["metadata"]["generation"]
        clusters = manifest["spec"]["source"]["kafka"]["clusters"]
        is_out = not any(c["name"] == "dr" and c.get("active", True) for c in clusters)
        if is_out and is_stable and is_of_spec and any(map(self.unfinished, self.of)):
            self.wrong.append(f"stable too early: {state}")


async def reading(story: Story, hosts: int = 1) -> BusyDrivers:
    """Start a source with both clusters, whose hosts have begun a micro-batch of both."""
    names, drivers = [str(number) for number in range(hosts)], BusyDrivers(story)
    several = {"parallelism": 4, "application": application(count=hosts)} if hosts > 1 else {}
    story.broker.create("dr", "orders", range(4), end=5)
    await story.begin(source=source(MAIN, DR), **several)
    await drivers.rest(*names, splits=12)
    drivers.begin(*names)
    return drivers


async def until_said(story: Story, drivers: BusyDrivers, text: str) -> None:
    def is_said() -> bool:
        drivers.step()
        found = progressing(story)
        return found.get("reason") == "SplitsLeaving" and text in found["message"]

    await story.until(is_said, text)


async def stays(story: Story, drivers: BusyDrivers, looks: int = 100) -> None:
    """Check that the condition stays while time passes, over every resync."""
    for _ in range(looks):
        drivers.step()
        left = iter([False, True])
        await story.until(lambda left=left: next(left), "a moment")
        assert progressing(story)["reason"] == "SplitsLeaving"


@pytest.mark.parametrize(
    "after", [(MAIN, {**DR, "active": False}), (MAIN,)], ids=["inactive", "taken out"]
)
def test_a_cluster_leaves_when_the_micro_batch_that_names_it_is_committed(
    after: tuple[Mapping[str, Any], ...],
) -> None:
    async def play(story: Story) -> None:
        drivers = await reading(story)

        story.patch(source=source(*after))
        await until_said(story, drivers, "cluster dr may still be read: the driver finishes")
        assert progressing(story)["message"].endswith("(4 splits)")
        await stays(story, drivers)
        assert drivers.unfinished("0")

        drivers.finish("0")
        await drivers.rest("0", splits=8)
        await story.until(lambda: progressing(story)["reason"] == "Stable", "the end")
        assert not drivers.unfinished("0")
        assert drivers.wrong == []

    played(play)


def test_every_host_has_to_commit_its_micro_batch() -> None:
    async def play(story: Story) -> None:
        drivers = await reading(story, hosts=2)

        story.patch(source=source(MAIN, {**DR, "active": False}))
        await until_said(story, drivers, "each of the hosts 0, 1 finishes its micro-batch first")
        drivers.finish("0")
        await until_said(story, drivers, "cluster dr may still be read: host 1 finishes")
        await stays(story, drivers)

        drivers.finish("1")
        await drivers.rest("0", "1", splits=8)
        await story.until(lambda: progressing(story)["reason"] == "Stable", "the end")
        assert drivers.wrong == []

    played(play)


def test_a_driver_that_dies_in_between_has_to_repeat_its_micro_batch() -> None:
    async def play(story: Story) -> None:
        drivers = await reading(story)
        story.patch(source=source(MAIN, {**DR, "active": False}))
        await until_said(story, drivers, "cluster dr")

        drivers.of["0"].start()  # it replays, and commits what it has replayed
        drivers.busy.clear()

        await drivers.rest("0", splits=8)
        await story.until(lambda: progressing(story)["reason"] == "Stable", "the end")
        assert drivers.wrong == []

    played(play)


def test_a_source_that_is_suspended_in_between_is_not_done() -> None:
    """Its next driver repeats the micro-batch, and needs the cluster for it."""

    async def play(story: Story) -> None:
        drivers = await reading(story)
        story.patch(suspend=True)
        await story.until(lambda: story.status["application"]["state"] == "Paused", "the stop")

        story.patch(source=source(MAIN, {**DR, "active": False}))

        await until_said(story, drivers, "The source is stopped: let it run until then")
        assert drivers.unfinished("0")
        assert drivers.wrong == []

    played(play)


def test_a_topic_that_is_taken_out_is_named_with_its_cluster() -> None:
    async def play(story: Story) -> None:
        drivers = BusyDrivers(story)
        story.broker.create("main", "payments", range(2), end=5)
        both = source(MAIN)
        both["kafka"]["subscription"] = {"topics": ["orders", "payments"]}
        await story.begin(source=both)
        await drivers.rest("0", splits=10)
        drivers.begin("0")

        story.patch(source=source(MAIN))

        await until_said(story, drivers, "topic payments of cluster main may still be read")

    played(play)
