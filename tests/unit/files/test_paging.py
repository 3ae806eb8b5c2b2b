"""A source that is listed in pages, under the real coordinator."""

import json
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import CallFailure
from balanced_source.connectors.files import (
    File,
    FilesSource,
    Format,
    ListFiles,
    OnFileLoss,
    page_of,
)
from balanced_source.connectors.files import source as module
from balanced_source.connectors.pull import paging
from balanced_source.coordinator import CallCompleted, Effect, ExecuteCall, SourceCoordinator
from balanced_source.errors import TransientDiscoveryError
from balanced_source_adapters.files.connector import FilesCodec

SECOND = 1_000_000_000


class Scene:
    """A coordinator, and files that come and go."""

    def __init__(self, **more: Any) -> None:
        self.files: dict[str, File] = {}
        self.source = FilesSource(paths=("/in",), kind_of_file=Format.TEXT, **more)
        self.coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(self.source)
        self.calls: list[ExecuteCall] = []
        self.take(self.coordinator.start(now=0))

    def write(self, name: str, at: int, size: int = 9) -> None:
        self.files[name] = File(at * SECOND, f"/in/{name}", size)

    def take(self, effects: list[Effect]) -> None:
        self.calls += [effect for effect in effects if isinstance(effect, ExecuteCall)]

    def look(self, *, is_down: bool = False) -> None:
        """Answer all calls that wait, by way of the documents."""
        calls, self.calls = self.calls, []
        for effect in calls:
            assert isinstance(effect.call, ListFiles)
            codec = FilesCodec()
            call = codec.call_from_json(json.loads(json.dumps(codec.call_to_json(effect.call))))
            assert call == effect.call
            page = json.loads(
                json.dumps(codec.result_to_json(call, page_of(call, self.files.values()).page))
            )
            answer: Any = codec.result_from_json(call, page)
            if is_down:
                answer = CallFailure(TransientDiscoveryError("no answer"))
            self.take(self.coordinator.handle(CallCompleted(effect.call_id, answer), now=0))

    @property
    def pending(self) -> list[str]:
        return [str(split_id[1]).removeprefix("/in/") for split_id in self.state.pending]

    @property
    def state(self) -> Any:
        return self.coordinator.enumerator.snapshot_state()

    @property
    def problems(self) -> list[str]:
        return [str(problem) for problem in self.coordinator.enumerator.problems().values()]


@pytest.fixture
def scene() -> Scene:
    made = Scene(discovery_interval=7.0)
    made.write("a", 100)
    made.look()
    return made


def test_it_looks_again_after_the_interval(scene: Scene) -> None:
    assert [call.delay for call in scene.calls] == [7.0]
    scene.write("b", 101)
    scene.look()

    assert scene.pending == ["a", "b"]


def test_the_largest_blocks_go_first(scene: Scene) -> None:
    scene.write("large", 101, size=99)
    scene.look()

    assert scene.pending == ["large", "a"]


def test_a_failed_listing_is_repeated_and_reported(scene: Scene) -> None:
    scene.look(is_down=True)
    assert scene.problems == ["no answer"]
    scene.look()

    assert scene.problems == []
    assert scene.pending == ["a"]


def test_the_next_page_waits_until_few_blocks_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE", 300)
    made = Scene()
    for number in range(400):
        made.write(f"{number:03}", number)
    made.look()

    assert len(made.pending) == 300
    assert made.calls == [], "there is enough to give out"
    assert not made.state.is_listed


def test_files_of_many_blocks_fill_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a page of huge files would be millions of blocks, all in the state."""
    monkeypatch.setattr(module, "PAGE", 10)
    made = Scene(split_bytes=100)
    for number, size in enumerate([2500, 400, 0, 400, 100, 400, 9]):
        made.write(f"{number}", number, size=size)

    shown = []
    for _ in range(4):
        before = len(made.pending)
        made.look()
        shown.append(len(made.pending) - before)

    assert shown == [25, 9, 5, 0], "a whole file at least; an empty one counts for one"
    assert made.state.is_listed


def test_a_source_that_ends_is_listed_after_its_last_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE", 2)
    made = Scene()
    for number in range(5):
        made.write(f"{number}", number)
    for _ in range(3):
        made.look()

    assert made.state.is_listed
    assert len(made.pending) == 5
    assert made.calls == []


@pytest.mark.parametrize(("name", "at"), [("a", 101), ("too-late", 1)])
def test_the_policy_decides_on_changed_and_on_too_late_files(name: str, at: int) -> None:
    for policy in OnFileLoss:
        made = Scene(discovery_interval=7.0, on_loss=policy, late=10.0)
        made.write("old", 50)
        made.write("a", 100)
        made.look()
        made.write(name, at)
        made.look()

        assert len(made.problems) == 1
        assert ("changed" if name == "a" else "at least 1 file") in made.problems[0]
        assert made.pending == ["a", "old"] or set(made.pending) == {"a", "old"}
        made.write("new", 102)
        made.look()
        assert ("new" in made.pending) is (policy is OnFileLoss.SKIP)


def test_a_restored_state_continues_where_it_was(scene: Scene) -> None:
    state = scene.source.decode_state(
        1, json.loads(json.dumps(scene.source.encode_state(scene.state)))
    )

    assert state == scene.state
    assert state.cursor is not None


@pytest.mark.parametrize("size", [300, 20], ids=["grows", "shrinks"])
@pytest.mark.parametrize("policy", list(OnFileLoss))
def test_a_file_that_changes_before_it_is_read_is_read_as_it_is_now(
    policy: OnFileLoss, size: int
) -> None:
    """Blocks of both versions beside each other would be read in part."""
    scene = Scene(discovery_interval=7.0, late=10.0, split_bytes=100, on_loss=policy)
    scene.write("old", 1, 150)
    scene.write("new", 100, 50)
    scene.look()
    assert scene.pending == ["old", "new", "old"]

    scene.write("old", 200, size)
    scene.look()

    of_old = [split for s, split in scene.state.pending.items() if s[1] == "/in/old"]
    assert {split.file for split in of_old} == {scene.files["old"]}
    assert sum(split.stop - split.split_id[2] for split in of_old) == size
    assert scene.problems == []


@pytest.mark.parametrize("policy", list(OnFileLoss))
def test_a_file_that_changes_when_a_part_of_it_was_read_is_a_conflict(policy: OnFileLoss) -> None:
    """Its new blocks would be read beside those that were read of the old one."""
    scene = Scene(discovery_interval=7.0, late=10.0, split_bytes=100, on_loss=policy)
    scene.write("old", 1, 250)
    scene.write("new", 100, 50)
    scene.look()
    enumerator: Any = scene.coordinator.enumerator
    read = {s: split for s, split in enumerator.state.pending.items() if s[2] != 0}
    enumerator.state = replace(enumerator.state, pending=read)
    before = scene.files["old"]

    scene.write("old", 200, 300)
    scene.look()

    of_old = {split.file for s, split in scene.state.pending.items() if s[1] == "/in/old"}
    assert of_old == {before}
    assert scene.problems != [], "it is said, whatever the policy"


def test_the_state_stays_small_while_files_come_and_no_one_reads() -> None:
    """Such as while a sink is down for a day."""
    made = Scene(discovery_interval=7.0)
    for number in range(2_000):
        made.write(f"{number:04}", number)
        made.look()

    assert len(made.pending) == paging.FEW
    enumerator: Any = made.coordinator.enumerator
    assert not enumerator.is_listing
    enumerator.state = replace(enumerator.state, pending={})
    enumerator._go_on(delay=None)
    assert enumerator.is_listing, "when they are read, it is high time"
