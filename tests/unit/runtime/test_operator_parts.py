"""The same stories with documents that do not fit.

State and assignment in parts, killed and cut off at any call.
"""

import pytest

from balanced_source.documents.parts import PARTS, parts_of
from balanced_source_operator.resources.documents import blob_of
from balanced_source_operator.resources.kinds import CONFIG_MAP
from support import virtual_time
from support.cluster_story import NAMESPACE, Story
from support.fake_kubernetes import Fault
from support.small_parts import shrink_limits


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink_limits(monkeypatch)


async def play(story: Story) -> list[dict[object, int]]:
    """Assign, grow, rescale, lose the driver."""
    owners: list[dict[object, int]] = []
    await story.begin()
    await story.launched()
    story.driver.start()
    await story.adopted(parallelism=2, splits=8)
    story.broker.create("main", "orders", range(8, 30), end=5)
    await story.adopted(parallelism=2, splits=30)
    for parallelism in (5, 4):
        story.patch(parallelism=parallelism)
        await story.adopted(parallelism=parallelism, splits=30)
        owners.append(dict(story.owners))
    story.driver.start()
    await story.adopted(parallelism=4, splits=30)
    owners.append(dict(story.owners))
    await story.end()
    assert story.broken == []
    return owners


def named_parts(story: Story, document: str) -> dict[str, bool]:
    """Parts that exist → whether the head names them."""
    head = story.server.find(CONFIG_MAP, NAMESPACE, document)
    assert head is not None
    numbers = {ref.number for ref in parts_of(blob_of(head))}
    names = [f"{document}-{number}" for number in range(PARTS)]
    return {
        name: number in numbers
        for number, name in enumerate(names)
        if story.server.find(CONFIG_MAP, NAMESPACE, name) is not None
    }


def test_the_story_in_parts() -> None:
    story = Story()
    virtual_time.run(play(story))

    for document in ("orders-enumerator", "orders-assignment"):
        parts = named_parts(story, document)
        assert any(parts.values()), f"{document} has parts"
        for name, is_named in parts.items():
            manifest = story.server.find(CONFIG_MAP, NAMESPACE, name)
            assert manifest is not None
            assert bool(blob_of(manifest).binary) == is_named, (
                f"{name} is emptied when it is not needed"
            )
            assert manifest["metadata"]["ownerReferences"], f"{name} goes with its source"


@pytest.mark.parametrize("fault", list(Fault))
def test_a_fault_at_any_call_leaves_the_same_final_state(fault: Fault) -> None:
    undisturbed = Story()
    expected = virtual_time.run(play(undisturbed))
    calls = len(undisturbed.operators[0].client.calls)
    assert calls > 60, "parts take calls"

    for at in range(1, calls + 1, 3):
        assert virtual_time.run(play(Story(fault, at))) == expected, f"{fault.value} at call {at}"


@pytest.mark.parametrize("document", ["orders-enumerator", "orders-assignment"])
def test_a_deleted_part_is_restored(document: str) -> None:
    story = Story()

    async def damaged() -> None:
        await story.begin()
        await story.launched()
        story.driver.start()
        story.broker.create("main", "orders", range(8, 30), end=5)
        await story.adopted(parallelism=2, splits=30)
        before = story.documents.text(document.removeprefix("orders-"))
        part = next(name for name, is_named in named_parts(story, document).items() if is_named)
        story.server.remove(CONFIG_MAP, NAMESPACE, part)
        assert story.documents.text(document.removeprefix("orders-")) is None
        await story.until(
            lambda: story.documents.text(document.removeprefix("orders-")) == before, "restored"
        )
        await story.end()

    virtual_time.run(damaged())
    assert story.broken == []
