"""The operator killed between any two effects, or cut off from the API server at any call.

The end is the same.
"""

import random
from dataclasses import dataclass

import pytest

from balanced_source.api import SplitId
from balanced_source_operator.resources.kinds import BALANCED_SOURCE
from support import virtual_time
from support.cluster_story import NAMESPACE, Story
from support.fake_kubernetes import Fault

CHILDREN = [
    "ConfigMap orders-assignment",
    "ConfigMap orders-enumerator",
    "ConfigMap orders-readers",
    "Pod orders-1-driver",
    "Role orders-documents",
    "RoleBinding orders-documents",
    "SparkApplication orders-1",
]


MANY = 30
"""The story takes at least so many calls, so that the tests below cannot pass by doing nothing."""


@dataclass
class Outcome:
    """What a fault must not change."""

    owners: list[dict[SplitId, int]]
    applications: list[str]
    children: list[str]
    delivered: int
    incarnation: int


async def play(story: Story) -> Outcome:
    """Create, discover, assign, launch, grow, rescale, lose the driver, suspend, delete."""
    owners: list[dict[SplitId, int]] = []
    await story.begin()
    await story.launched()
    story.driver.start()
    await story.adopted(parallelism=2, splits=8)
    owners.append(dict(story.owners))
    story.broker.create("main", "orders", range(8, 11), end=5)
    await story.adopted(parallelism=2, splits=11)
    owners.append(dict(story.owners))
    for parallelism in (5, 3):
        story.patch(parallelism=parallelism)
        await story.adopted(parallelism=parallelism, splits=11)
        owners.append(dict(story.owners))
    children = story.children()
    story.driver.start()  # a new incarnation, from its checkpoint
    await story.adopted(parallelism=3, splits=11)
    owners.append(dict(story.owners))
    story.patch(suspend=True)
    await story.until(
        lambda: not [c for c in story.children() if "Spark" in c], "no application while suspended"
    )
    story.server.remove(BALANCED_SOURCE, NAMESPACE, "orders")
    await story.until(
        lambda: not any(o.supervisor.sources for o in story.operators), "the source's task ended"
    )
    await story.until(lambda: story.children() == [], "nothing is left behind")
    await story.end()
    return Outcome(
        owners=owners,
        applications=story.applications,
        children=children,
        delivered=len(story.driver.delivered),
        incarnation=story.driver.host.incarnation,
    )


def run(story: Story) -> Outcome:
    outcome = virtual_time.run(play(story))
    assert story.broken == []
    return outcome


def test_the_story_without_a_fault() -> None:
    outcome = run(Story())

    assert outcome.children == CHILDREN
    assert outcome.applications == ["orders-1"]
    assert outcome.delivered == 11 * 5
    for owners, readers in zip(outcome.owners, (2, 2, 5, 3, 3), strict=True):
        counts = [list(owners.values()).count(reader) for reader in range(readers)]
        assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize(
    ("fault", "step"), [(Fault.KILLED, 1), (Fault.LOST_RESPONSE, 1), (Fault.LOST_REQUEST, 3)]
)
def test_a_fault_at_any_call_leaves_the_same_final_state(fault: Fault, step: int) -> None:
    """Every call for what may leave something half done.

    A request that was never seen leaves nothing.
    """
    undisturbed = Story()
    expected = run(undisturbed)
    hit = 0

    for at in range(1, len(undisturbed.operators[0].client.calls) + 1, step):
        story = Story(fault, at)
        assert run(story) == expected, f"{fault.value} at call {at}"
        hit += story.restarts if fault is Fault.KILLED else 1

    assert hit >= MANY // step


@pytest.mark.parametrize("seed", range(8))
def test_late_and_reordered_events_leave_the_same_final_state(seed: int) -> None:
    """Watches of different kinds overtake each other, and the operator is cut off or killed."""
    chance = random.Random(seed)
    fault = chance.choice([None, *Fault])
    story = Story(fault, chance.randint(1, 60), lag=lambda: chance.choice([0.0, 0.1, 1.0, 4.0]))

    assert run(story) == run(Story())


@pytest.mark.parametrize("first", [3, 8, 13, 14, 19])
def test_killed_again_and_again(first: int) -> None:
    """Each successor dies as well, a few calls later, until the seventh lives."""
    expected = run(Story())
    story = Story(Fault.KILLED, first, deaths=[4, 9, 2, 6, 12])

    assert run(story) == expected
    assert story.restarts == 6
