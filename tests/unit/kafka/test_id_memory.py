"""Topic ids are asked for once a second, and at once where an answer may be of another topic."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import pytest

from balanced_source.api import IDENTITY, SplitId, is_other
from balanced_source.connectors.kafka import KafkaCluster
from balanced_source.connectors.kafka.offsets import NO_TOPIC_ID
from balanced_source.connectors.kafka.split import split_of
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import TransientDiscoveryError
from balanced_source.host.ends import Mark, Marks, SplitEnd, look
from balanced_source_adapters.kafka import admin as kafka_admin
from balanced_source_adapters.kafka import id_memory
from balanced_source_adapters.kafka.admin import KafkaAdmin
from balanced_source_adapters.kafka.client import Tail
from balanced_source_adapters.kafka.id_memory import MOMENT, IdMemory
from balanced_source_adapters.kafka.topics import Topic

A: SplitId = ("c", "t", 0)
B: SplitId = ("c", "t", 1)
CLUSTER = KafkaCluster(name="c", bootstrap_servers="nowhere:1")


class Client:
    """Topic `t`: what it has, and how often its id was asked for."""

    def __init__(self) -> None:
        self.topic_id: str | None = "old"
        self.tail = Tail(offset=9, leader_epoch=3)
        self.missing: set[SplitId] = set()
        self.silent: set[SplitId] = set()
        self.questions = 0

    def tails(self, split_ids: Iterable[SplitId]) -> dict[SplitId, Tail]:
        found = {s: self.tail for s in split_ids if s not in self.missing | self.silent}
        if self.silent:
            error = TransientDiscoveryError("silent", scope="c")
            error.answers = found
            raise error
        return found

    def topics(self, names: Iterable[str], *, must_be_readable: bool = False) -> dict[str, Topic]:
        self.questions += 1
        if self.topic_id is None:
            return {}
        return dict.fromkeys(names, Topic(frozenset({0, 1}), self.topic_id))

    def recreate(self) -> None:
        self.topic_id = "new"


class Scene:
    """An adapter that has asked for ends once, over a clock that stands."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.client = Client()
        self.now = 100.0
        memory = IdMemory(clock=lambda: self.now)
        monkeypatch.setattr(KafkaAdmin, "_client", lambda *_: self.client)
        monkeypatch.setattr(kafka_admin, "IdMemory", lambda: memory)
        self._admin = KafkaAdmin()
        self.offset = StreamOffset(
            epoch=1,
            parallelism=1,
            owners={A: 0, B: 0},
            positions={A: 5, B: 5},
            attributes={A: {IDENTITY: "old"}, B: {IDENTITY: "old"}},
            terms={A: 3},
        )
        self.ends()
        assert self.client.questions == 1

    def ends(self, *, asked: Collection[SplitId] = (A, B)) -> Mapping[SplitId, SplitEnd]:
        return self._admin.ends(CLUSTER, asked, Marks(self.offset, asked))

    def questions(self, *, asked: Collection[SplitId] = (A, B)) -> int:
        """Returns how many questions for ids the next look takes."""
        before = self.client.questions
        self.ends(asked=asked)
        return self.client.questions - before


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def test_a_look_a_moment_later_asks_for_no_id(scene: Scene) -> None:
    scene.client.tail = Tail(offset=12, leader_epoch=3)
    assert scene.questions() == 0
    assert scene.ends() == dict.fromkeys((A, B), SplitEnd(end=12, identity="old", term=3))


def test_the_id_is_asked_for_again_after_a_moment(scene: Scene) -> None:
    scene.now += MOMENT
    assert [scene.questions(), scene.questions()] == [1, 0]


def test_a_new_topic_is_noticed_after_a_moment(scene: Scene) -> None:
    scene.client.recreate()
    assert scene.ends()[A].identity == "old"
    scene.now += MOMENT
    assert look(scene.offset, scene.ends()).recreated == {A, B}


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(Tail(offset=4, leader_epoch=3), id="an end before the position"),
        pytest.param(Tail(offset=9, leader_epoch=0), id="another leadership"),
    ],
)
def test_a_new_topic_is_noticed_at_once_by(scene: Scene, tail: Tail) -> None:
    scene.client.recreate()
    scene.client.tail = tail
    assert look(scene.offset, scene.ends()).recreated == {A, B}


def test_what_expects_the_new_topic_gets_its_id_at_once(scene: Scene) -> None:
    """Else the new topic would count as recreated once more."""
    scene.client.recreate()
    scene.offset = replace(scene.offset, attributes={s: {IDENTITY: "new"} for s in (A, B)})
    assert look(scene.offset, scene.ends()).recreated == frozenset()


def test_ids_are_asked_for_while_a_partition_is_missing(scene: Scene) -> None:
    scene.client.missing = {B}
    assert [scene.questions(), scene.questions()] == [1, 1]


def test_a_new_topic_is_noticed_at_once_by_a_look_while_there_was_none(scene: Scene) -> None:
    scene.client.missing, scene.client.topic_id = {A, B}, None
    assert scene.ends() == {}
    scene.client.missing, scene.client.topic_id = set(), "new"
    assert look(scene.offset, scene.ends()).recreated == {A, B}


def test_ids_are_asked_for_while_a_partition_is_silent(scene: Scene) -> None:
    scene.client.silent = {B}
    for _ in range(2):
        before = scene.client.questions
        with pytest.raises(TransientDiscoveryError):
            scene.ends()
        assert scene.client.questions == before + 1


def test_splits_that_are_not_read_yet_are_asked_for_with_ids(scene: Scene) -> None:
    """No one has seen an id that theirs could be compared with."""
    scene.offset = replace(
        scene.offset, owners={A: 0}, positions={A: 5}, attributes={A: {IDENTITY: "old"}}
    )
    assert [scene.questions(), scene.questions(asked=(A,))] == [1, 0]


def test_without_marks_ids_are_always_asked_for(scene: Scene) -> None:
    for _ in range(2):
        before = scene.client.questions
        scene._admin.ends(CLUSTER, [A])
        assert scene.client.questions == before + 1


def test_marks_of_any_kind_are_compared(scene: Scene) -> None:
    expected = dict.fromkeys((A, B), Mark(position=5, term=3, identity="old"))
    for marks, count in (
        (expected, 0),
        ({**expected, B: Mark(position=5, identity="new")}, 1),
        ({**expected, B: Mark(position=10, identity="old")}, 1),
    ):
        before = scene.client.questions
        scene._admin.ends(CLUSTER, [A, B], marks)
        assert scene.client.questions == before + count


def test_each_client_has_a_memory_of_its_own() -> None:
    """Another cluster under the same name has other topics."""
    admin = KafkaAdmin()
    first, second = Client(), Client()
    memory = admin._memory(first)  # type: ignore[arg-type]
    assert admin._memory(first) is memory is not admin._memory(second)  # type: ignore[arg-type]


def test_the_memory_forgets_after_a_moment() -> None:
    now = 5.0
    memory = IdMemory(clock=lambda: now)
    assert memory.recall() == {}
    memory.keep({"t": "x"})
    assert memory.recall() == {"t": "x"}
    now += id_memory.MOMENT
    assert memory.recall() == {}


def test_a_topic_that_gets_an_id_by_an_upgrade_of_its_cluster_is_the_same(scene: Scene) -> None:
    scene.client.topic_id = NO_TOPIC_ID
    scene.now += MOMENT
    assert scene.ends()[A].identity is None

    found = split_of(A, 5, {IDENTITY: NO_TOPIC_ID})

    assert found.topic_id is None
    assert not is_other(found.attributes(), {IDENTITY: "new"})
