"""One document of the operator: compare-and-swap, repair, and parts for what does not fit."""

import asyncio
import contextlib
from typing import Any

import pytest

from balanced_source.documents.parts import Content
from balanced_source.errors import CorruptDocumentError, StateConflictError
from balanced_source_operator.kube.port import KubernetesError
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, CONFIG_MAP
from balanced_source_operator.runtime.documents import DocumentWriter
from balanced_source_operator.runtime.ownership import ForeignObjectError
from support.builders import UID, identity
from support.fake_kubernetes import FakeKubernetes, Fault
from support.small_parts import shrink_limits

pytestmark = pytest.mark.asyncio

NAME = "orders-enumerator"
LARGE = {letter: "".join(f"{letter}{number:05}" for number in range(500)) for letter in "ab"}


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink_limits(monkeypatch)


class Scene:
    """The API server, and the writer of one operator."""

    def __init__(self) -> None:
        self.server = FakeKubernetes()
        # Without its owner the garbage collector would delete each document.
        source = {"metadata": {"name": "orders", "namespace": "default", "uid": UID}}
        self.server.add(BALANCED_SOURCE, source)
        self.client = self.server.client()
        self.writer = self.other()

    def other(self) -> DocumentWriter:
        """Return the writer of another operator process."""
        return DocumentWriter(self.client, identity(), NAME)

    def seen(self, name: str) -> Any:
        return self.server.find(CONFIG_MAP, "default", name)

    def edit(self, change: dict[str, Any], name: str = NAME) -> None:
        self.server.edit(CONFIG_MAP, "default", name, change)

    def lose(self, fault: Fault, *, after: int) -> None:
        """Let the API server not answer one of the next calls."""
        self.client._fault, self.client._at = fault, len(self.client.calls) + after

    @property
    def writes(self) -> list[str]:
        """Names of the ConfigMaps that were written, and that were not before; forgets them."""
        found = [c.split()[-1] for c in self.client.calls if c.startswith(("create", "replace"))]
        self.client.calls.clear()
        return found

    def parts(self) -> dict[str, bool]:
        """Parts that exist → whether they hold something."""
        maps = [name for (kind, _, name) in self.server.objects if kind == CONFIG_MAP]
        names = [name for name in maps if name != NAME]
        return {name: bool(self.seen(name).get("binaryData")) for name in names}


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.mark.parametrize("document", ["small", LARGE["a"]], ids=["small", "in parts"])
async def test_what_was_stored_is_read(scene: Scene, document: str) -> None:
    assert (await scene.writer.read(), scene.writer.text) == (None, None)
    await scene.writer.swap(document)
    assert scene.writer.text == document

    other = scene.other()
    assert await other.read() == document
    assert other.content == Content(document)


@pytest.mark.parametrize("document", ["small", LARGE["a"]], ids=["small", "in parts"])
@pytest.mark.parametrize("before", [None, "known"])
async def test_of_two_writers_one_wins(scene: Scene, document: str, before: str | None) -> None:
    if before is not None:
        await scene.writer.swap(before)
    late = scene.other()
    await late.read()
    await scene.writer.swap("the first")

    with pytest.raises(StateConflictError, match="orders-enumerator was written by another"):
        await late.swap(document)
    assert await scene.other().read() == "the first"
    assert scene.parts() == {}, "parts are written only by who is the only writer"

    await late.put(Content(document))
    assert await scene.other().read() == document, "an assignment has one writer, who wins"
    await late.swap("the next")
    assert await scene.other().read() == "the next"


async def test_a_broken_document_is_an_error_and_nothing_is_taken_for_stored(scene: Scene) -> None:
    await scene.writer.swap("good")
    scene.edit({"data": None, "binaryData": {"document.json.gz": "broken"}})

    with pytest.raises(CorruptDocumentError):
        await scene.writer.read()
    assert scene.writer.text is None


async def test_an_object_of_someone_else_is_left_alone(scene: Scene) -> None:
    foreign = {"metadata": {"name": NAME, "namespace": "default"}, "data": {"theirs": "1"}}
    scene.server.add(CONFIG_MAP, foreign)

    with pytest.raises(ForeignObjectError, match=f"ConfigMap {NAME} exists and does not belong"):
        await scene.writer.read()


async def test_a_change_by_hand_is_foreign_and_a_late_watch_is_not(scene: Scene) -> None:
    assert not scene.writer.is_foreign(scene.seen), "nothing was written yet"
    await scene.writer.swap("first")
    late = scene.seen(NAME)
    await scene.writer.swap("second")
    assert not scene.writer.is_foreign(scene.seen)
    assert scene.writer.is_foreign(lambda _: late)
    assert not await scene.writer.is_still_foreign()

    scene.edit({"metadata": {"labels": {"team": "shop"}}})
    assert not scene.writer.is_foreign(scene.seen), "its document is the same"
    scene.edit({"data": {"document.json": "by hand"}})
    assert scene.writer.is_foreign(scene.seen)
    assert await scene.writer.is_still_foreign()

    scene.server.remove(CONFIG_MAP, "default", NAME)
    assert scene.writer.is_foreign(scene.seen)
    assert await scene.writer.is_still_foreign()


async def test_a_lost_owner_reference_is_restored_and_nothing_else(scene: Scene) -> None:
    assert not scene.writer.is_unmarked(scene.seen), "nothing was written yet"
    await scene.writer.swap("document")
    assert not scene.writer.is_unmarked(scene.seen)
    assert not await scene.writer.mark()

    labels = dict.fromkeys(scene.seen(NAME)["metadata"]["labels"])
    scene.edit({"metadata": {"ownerReferences": None, "labels": labels}})
    assert scene.writer.is_unmarked(scene.seen)
    assert await scene.writer.mark()
    assert not scene.writer.is_unmarked(scene.seen)
    await scene.writer.swap("it can still be written")

    scene.edit({"metadata": {"labels": labels}})
    assert scene.writer.is_unmarked(scene.seen)
    assert not await scene.writer.mark(), "it is bound to its source all the time"
    assert not scene.writer.is_unmarked(scene.seen)


async def test_what_was_changed_too_is_not_marked(scene: Scene) -> None:
    await scene.writer.swap("document")
    scene.edit({"metadata": {"ownerReferences": None}, "data": {"document.json": "by hand"}})
    assert not await scene.writer.mark()
    assert not identity().is_bound(scene.seen(NAME))

    scene.server.remove(CONFIG_MAP, "default", NAME)
    assert scene.writer.is_unmarked(scene.seen)
    assert not await scene.writer.mark()


async def test_parts_come_before_the_head_and_former_ones_are_emptied_after_it(
    scene: Scene,
) -> None:
    await scene.writer.swap(LARGE["a"])
    first = scene.writes
    assert first == [f"{NAME}-{number}" for number in range(4)] + [NAME]

    await scene.writer.swap(LARGE["b"])
    assert scene.writes == [f"{NAME}-{number}" for number in range(4, 8)] + [NAME] + first[:4]
    assert [name for name, is_full in scene.parts().items() if is_full] == [
        f"{NAME}-{number}" for number in range(4, 8)
    ]

    await scene.writer.swap("small")
    assert scene.writes == [NAME] + [f"{NAME}-{number}" for number in range(4, 8)]
    assert not any(scene.parts().values())


async def test_the_parts_of_a_base_are_written_once(scene: Scene) -> None:
    await scene.writer.put(Content("increment 1", LARGE["a"]))
    assert len(scene.writes) == 5
    await scene.writer.put(Content("increment 2", LARGE["a"]))
    assert scene.writes == [NAME]

    other = scene.other()
    await other.read()
    assert other.content == Content("increment 2", LARGE["a"])
    await other.put(Content("increment 3", LARGE["a"]))
    assert scene.writes == [NAME], "the next operator knows the parts"


@pytest.mark.parametrize("is_deleted", [True, False])
async def test_a_damaged_part_is_foreign_and_is_written_again(
    scene: Scene, *, is_deleted: bool
) -> None:
    await scene.writer.swap(LARGE["a"])
    part = f"{NAME}-2"
    assert not scene.writer.is_foreign(scene.seen)
    if is_deleted:
        scene.server.remove(CONFIG_MAP, "default", part)
    else:
        scene.edit({"binaryData": None}, part)

    assert scene.writer.is_foreign(scene.seen)
    assert await scene.writer.is_still_foreign()
    with pytest.raises(CorruptDocumentError):
        await scene.other().read()
    await scene.writer.put(Content(LARGE["a"]))
    assert not await scene.writer.is_still_foreign()
    assert not scene.writer.is_foreign(scene.seen)
    assert await scene.other().read() == LARGE["a"]


async def test_parts_that_were_written_before_an_outage_are_not_written_again(
    scene: Scene,
) -> None:
    scene.lose(Fault.LOST_REQUEST, after=7)  # a look at the head, and two calls for each part
    with pytest.raises(KubernetesError):
        await scene.writer.swap(LARGE["a"])
    assert scene.writes == [f"{NAME}-{number}" for number in range(3)]

    scene.client._fault = None
    await scene.writer.swap(LARGE["a"])
    assert scene.writes == [f"{NAME}-2", f"{NAME}-3", NAME]


async def test_a_part_whose_write_was_cut_off_may_hold_anything(scene: Scene) -> None:
    scene.lose(Fault.LOST_REQUEST, after=7)
    with pytest.raises(KubernetesError):
        await scene.writer.swap(LARGE["a"])
    scene.lose(Fault.LOST_RESPONSE, after=3)  # its first part lies where one of the other was
    with pytest.raises(KubernetesError):
        await scene.writer.swap(LARGE["b"])
    scene.client._fault = None
    await scene.writer.swap(LARGE["a"])

    assert await scene.other().read() == LARGE["a"]


async def test_after_a_document_that_cannot_be_read_all_parts_are_written_again(
    scene: Scene,
) -> None:
    await scene.writer.swap(LARGE["a"])
    scene.server.remove(CONFIG_MAP, "default", f"{NAME}-2")
    with pytest.raises(CorruptDocumentError):
        await scene.writer.read()

    await scene.writer.put(Content(LARGE["a"]))
    assert await scene.other().read() == LARGE["a"]


async def test_each_version_of_a_part_is_looked_into_once(scene: Scene) -> None:
    await scene.writer.swap(LARGE["a"])
    assert not scene.writer.is_foreign(scene.seen)

    def emptied(name: str) -> Any:
        found = scene.seen(name)
        return found if name == NAME else {"metadata": found["metadata"]}

    assert not scene.writer.is_foreign(emptied)
    scene.edit({"metadata": {"labels": {"team": "shop"}}}, f"{NAME}-1")
    assert scene.writer.is_foreign(emptied), "that is another version"


async def test_a_part_of_someone_else_is_left_alone(scene: Scene) -> None:
    foreign = {"metadata": {"name": f"{NAME}-0", "namespace": "default"}}
    scene.server.add(CONFIG_MAP, foreign)

    with pytest.raises(ForeignObjectError, match=f"ConfigMap {NAME}-0 exists"):
        await scene.writer.swap(LARGE["a"])


async def test_a_document_without_its_source_is_collected_however_fast_the_machine_is(
    scene: Scene,
) -> None:
    """Of the fake: in real time no test may depend on the time until the collector looks."""
    await scene.writer.swap("of a source that lives")
    await asyncio.sleep(0)
    assert scene.seen(NAME) is not None

    scene.server.remove(BALANCED_SOURCE, "default", "orders")
    await scene.other().swap("of a source that is gone")
    await asyncio.sleep(0)
    assert scene.seen(NAME) is None


@pytest.mark.parametrize("before", ["", "old"], ids=["first write", "later write"])
async def test_what_was_stored_without_an_answer_was_written_by_this_process(
    scene: Scene, before: str
) -> None:
    """A slow API server stores it after the operator has given up waiting."""
    if before:
        await scene.writer.swap(before)
    # the second one is refused first, because of the first one
    for document, call in (("first", 1), ("second", 3)):
        scene.lose(Fault.LOST_RESPONSE, after=call)
        with pytest.raises(KubernetesError):
            await scene.writer.swap(document)
        assert not scene.writer.is_foreign(scene.seen)
        scene.client._fault = None

    await scene.writer.swap("third")

    assert await scene.other().read() == "third"


async def test_what_another_process_stores_after_a_request_without_an_answer_is_a_conflict(
    scene: Scene,
) -> None:
    await scene.writer.swap("old")
    scene.lose(Fault.LOST_RESPONSE, after=1)
    with pytest.raises(KubernetesError):
        await scene.writer.swap("ours")
    scene.client._fault = None
    other = scene.other()
    await other.read()
    await other.swap("theirs")

    assert scene.writer.is_foreign(scene.seen)
    with pytest.raises(StateConflictError):
        await scene.writer.swap("newer")

    assert await scene.other().read() == "theirs"


@pytest.mark.parametrize("cut", range(1, 24))
@pytest.mark.parametrize("is_put", [False, True], ids=["swap", "put"])
async def test_a_large_document_that_was_stored_without_an_answer_stays_whole_until_the_next_one(
    scene: Scene, cut: int, *, is_put: bool
) -> None:
    """The operator may die at any call of the next write."""

    async def store(document: str) -> None:
        await (scene.writer.put(Content(document)) if is_put else scene.writer.swap(document))

    await store("old")
    scene.lose(Fault.LOST_RESPONSE, after=10)  # a look at the head, two calls a part, the head
    with pytest.raises(KubernetesError):
        await store(LARGE["a"])
    assert await scene.other().read() == LARGE["a"]

    scene.lose(Fault.LOST_REQUEST, after=cut)
    with contextlib.suppress(KubernetesError):
        await store(LARGE["b"])
    scene.client._fault = None

    assert await scene.other().read() in (LARGE["a"], LARGE["b"])
    await store(LARGE["b"])
    assert await scene.other().read() == LARGE["b"]
    assert sum(scene.parts().values()) == 4, "no part is left over"
