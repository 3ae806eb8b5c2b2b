"""Sources of a namespace are served from its label on, by one operator after the other."""

from collections.abc import Mapping
from typing import Any

import pytest

from balanced_source_operator.resources.kinds import BALANCED_SOURCE
from balanced_source_operator.runtime.served_sources import ServedSources
from support.cluster_story import NAMESPACE, OperatorUnderTest, Story
from support.played_story import played
from support.virtual_time import clock


class Recorder:
    """A supervisor that notes what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def on_source(self, event: str | None, body: Mapping[str, Any]) -> None:
        self.calls.append((event, body["metadata"]["name"], body["metadata"]["resourceVersion"]))

    def let_go(self, namespace: str) -> None:
        self.calls.append(("let go", namespace))


class Scene:
    def __init__(self, *namespaces: str) -> None:
        self.recorder: Any = Recorder()
        self.namespaces = set(namespaces)
        self.sources = ServedSources(self.recorder, self.namespaces)

    def sees(self, event: str | None, name: str, revision: int, namespace: str = "jobs") -> None:
        metadata = {"namespace": namespace, "name": name, "resourceVersion": str(revision)}
        self.sources.on_source(event, {"metadata": metadata})

    def labels(self, namespace: str, *, is_served: bool) -> None:
        (self.namespaces.add if is_served else self.namespaces.discard)(namespace)
        self.sources.on_namespace(namespace, is_served)

    @property
    def calls(self) -> list[tuple[Any, ...]]:
        found, self.recorder.calls = self.recorder.calls, []
        return found


def test_sources_wait_until_their_namespace_is_served() -> None:
    scene = Scene()
    scene.sees(None, "orders", 5)
    scene.sees("ADDED", "clicks", 6)
    scene.sees("MODIFIED", "orders", 7)
    scene.sees("ADDED", "elsewhere", 8, namespace="other")
    assert scene.calls == []

    scene.labels("jobs", is_served=True)
    assert scene.calls == [(None, "orders", "7"), (None, "clicks", "6")]

    scene.sees("MODIFIED", "clicks", 9)
    assert scene.calls == [("MODIFIED", "clicks", "9")]


def test_a_namespace_that_is_let_go_and_comes_back_brings_its_sources() -> None:
    scene = Scene("jobs")
    scene.sees("ADDED", "orders", 5)
    scene.sees("ADDED", "deleted", 6)
    assert len(scene.calls) == 2

    scene.labels("jobs", is_served=False)
    assert scene.calls == [("let go", "jobs")]
    scene.sees("MODIFIED", "orders", 7)
    scene.sees("DELETED", "deleted", 8)
    scene.sees("ADDED", "created", 9)
    assert scene.calls == []

    scene.labels("jobs", is_served=True)
    assert scene.calls == [(None, "orders", "7"), (None, "created", "9")]


def test_a_late_event_of_a_former_source_does_not_hide_its_successor() -> None:
    scene = Scene()
    scene.sees("ADDED", "orders", 9)
    scene.sees("DELETED", "orders", 8)
    scene.labels("jobs", is_served=True)

    assert scene.calls == [(None, "orders", "9")]


def test_a_deletion_may_carry_the_version_that_was_seen_last() -> None:
    scene = Scene()
    scene.sees("ADDED", "orders", 5)
    scene.sees("DELETED", "orders", 5)
    scene.labels("jobs", is_served=True)

    assert scene.calls == []


class Shards:
    """Two operators that serve one cluster, and the label of the only namespace.

    The source is served by `a` at first.
    """

    def __init__(self, story: Story) -> None:
        self._of: dict[str, tuple[OperatorUnderTest, set[str]]] = {}
        self._story = story
        for name in ("a", "b"):
            namespaces = {NAMESPACE} if name == "a" else set[str]()
            operator = story.start_operator(
                name=f"pod-{name}", instance=f"{name}/operator", namespaces=namespaces
            )
            self._of[name] = operator, namespaces

    def serve(self, name: str) -> None:
        operator, namespaces = self._of[name]
        namespaces.add(NAMESPACE)
        operator.sources.on_namespace(NAMESPACE, True)

    def let_go(self, name: str) -> None:
        operator, namespaces = self._of[name]
        namespaces.discard(NAMESPACE)
        operator.sources.on_namespace(NAMESPACE, False)

    async def move(self, before: str, after: str, *, gap: float) -> None:
        """Change the label. The operators hear of it with a gap, or overlap if it is negative."""
        first, second = (self.let_go, self.serve) if gap >= 0 else (self.serve, self.let_go)
        names = (before, after) if gap >= 0 else (after, before)
        first(names[0])
        if gap:
            await passed(self._story, abs(gap))
        second(names[1])

    def sources(self, name: str) -> int:
        return self._of[name][0].supervisor.sources


async def reading(story: Story) -> Shards:
    """Begin a source that the first operator serves, and whose driver reads all splits."""
    await story.begin(operators=0)
    shards = Shards(story)
    await story.launched()
    story.driver.start()
    await story.adopted(parallelism=2, splits=8)
    return shards


async def passed(story: Story, seconds: float) -> None:
    begin = clock()
    await story.until(lambda: clock() - begin >= seconds, "time to pass")


def records(story: Story, number: int) -> None:
    for split in story.broker.ends:
        story.broker.ends[split] += number


@pytest.mark.parametrize("gap", [0.0, 45.0, -0.3, -20.0])
def test_a_source_moves_between_operators_without_a_lost_or_doubled_record(gap: float) -> None:
    async def play(story: Story) -> None:
        shards = await reading(story)
        incarnation = story.driver.host.incarnation

        for before, after, parallelism in (("a", "b", 3), ("b", "a", 4)):
            records(story, 5)
            story.patch(parallelism=parallelism)
            await shards.move(before, after, gap=gap)
            await story.adopted(parallelism=parallelism, splits=8)
            await story.until(
                lambda after=after: story.status.get("servedBy") == f"{after}/operator",
                "the status of the next operator",
            )
            assert (shards.sources(before), shards.sources(after)) == (0, 1)

        await story.until(
            lambda: (
                len(story.driver.delivered) == sum(story.broker.ends.values())
                or story.driver.batch()
            ),
            "all records",
        )
        assert story.applications == ["orders-1"], "nothing is restarted"
        assert story.driver.host.incarnation == incarnation
        if gap >= 0:
            assert "StateConflict" not in story.events

    played(play)


def test_a_namespace_that_is_let_go_keeps_its_objects() -> None:
    async def play(story: Story) -> None:
        shards = await reading(story)
        children = story.children()

        shards.let_go("a")
        calls = len(story.operators[0].client.calls)
        story.patch(parallelism=5)
        await passed(story, 600)

        assert story.children() == children
        assert story.server.find(BALANCED_SOURCE, NAMESPACE, "orders")["spec"]["parallelism"] == 5
        assert len(story.operators[0].client.calls) == calls, "no one serves it"

    played(play)


def test_a_label_that_is_back_at_once_is_served_by_one_task() -> None:
    async def play(story: Story) -> None:
        shards = await reading(story)

        for _ in range(3):
            shards.let_go("a")
            shards.serve("a")
        story.patch(parallelism=4)
        await story.adopted(parallelism=4, splits=8)

        assert shards.sources("a") == 1
        assert "StateConflict" not in story.events

    played(play)
