"""What planning remembers of the files that it has looked at, and of their store."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from balanced_source.api import Problem, SplitId
from balanced_source.connectors.files import (
    SKIPPED_BLOCKS,
    File,
    FilesSource,
    Format,
    OnFileLoss,
    Store,
    file_of,
)
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import (
    ContractViolationError,
    FatalProblemError,
    InvalidSpecError,
    TransientDiscoveryError,
)
from balanced_source.host.ends import Look, Mark
from balanced_source.reasons import Reason
from balanced_source_spark.files import hooks as hooks_module
from balanced_source_spark.files.hooks import FilesHooks
from balanced_source_spark.files.options import file_read_options
from support.planner_context import CONTEXT


class Settings:
    """Those of the newest assignment, and hooks that look them up."""

    def __init__(self, said: list[Problem | None] | None = None, **changes: Any) -> None:
        self.change(**changes)
        query: Any = replace(CONTEXT.query, read=file_read_options({"fileformat": "text"}))
        context: Any = replace(
            CONTEXT,
            query=query,
            known_settings=lambda: self.now,
            set_problem=lambda _, problem: None if said is None else said.append(problem),
        )
        self.hooks = FilesHooks(context)

    def change(self, **changes: Any) -> None:
        source = FilesSource(**{"paths": ("/",), "kind_of_file": Format.TEXT, **changes})
        self.now: Mapping[str, Any] = source.reader_settings()


def test_a_block_that_comes_back_is_checked_again(tmp_path: Path) -> None:
    """What is remembered must not grow with all files that ever were."""
    marks: dict[SplitId, Mark] = {}
    for number in range(5):
        path = tmp_path / f"{number}.txt"
        path.write_text("one\n")
        file = File(path.stat().st_mtime_ns, str(path), path.stat().st_size)
        marks["files", str(path), 0] = Mark(position=0, identity=file.identity)
    first, *others = marks
    hooks = Settings().hooks
    assert hooks.ends("files", list(marks), marks).keys() == marks.keys()

    hooks.ends("files", [first], {first: marks[first]})
    for split_id in others:
        Path(str(split_id[1])).unlink()

    assert hooks.ends("files", list(marks), marks).keys() == {first}


def test_a_file_that_was_lost_is_said_until_it_is_left_out(tmp_path: Path) -> None:
    path, said = tmp_path / "a.txt", list[Problem | None]()
    path.write_text("one\n")
    file = File(path.stat().st_mtime_ns, str(path), path.stat().st_size)
    split_id: SplitId = ("files", str(path), 0)
    hooks = Settings(said).hooks
    path.unlink()
    hooks.ends("files", [split_id], {split_id: Mark(position=0, identity=file.identity)})

    hooks.note_look(StreamOffset(positions={split_id: 0}), Look())
    hooks.note_look(StreamOffset(), Look())
    hooks.note_look(StreamOffset(), Look())

    lost, cleared = said
    assert lost is not None
    assert (lost.reason, lost.is_fatal, cleared) == (Reason.SPLITS_LOST, True, None)
    assert str(path) in lost.message


def test_a_file_that_was_lost_ends_a_query_for_which_no_one_else_can_act() -> None:
    said: list[Problem | None] = []

    def check() -> None:
        assert said
        raise FatalProblemError("it is lost", reason=Reason.SPLITS_LOST)

    split_id: SplitId = ("files", "/in/gone.txt", 0)
    settings = Settings(said)
    settings.hooks._context = replace(settings.hooks._context, check_problems=check)
    mark = Mark(position=0, identity=File(1, "", 100).identity)
    settings.hooks.ends("files", [split_id], {split_id: mark})

    with pytest.raises(FatalProblemError):
        settings.hooks.note_look(StreamOffset(positions={split_id: 0}), Look())


@pytest.mark.parametrize("identity", ["", "7", "7-x", "x-7"])
def test_an_identity_that_is_none_is_refused(identity: str) -> None:
    with pytest.raises(ContractViolationError, match="does not identify a file"):
        file_of("/a.txt", identity)


class Bucket:
    """A store that has every file."""

    def stat(self, path: str) -> File:
        return File(1, path, 100)


def test_a_store_that_moves_is_asked_at_its_new_place(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def store_of(store: Store, *_: Any) -> Bucket:
        opened.append(store.endpoint)
        return Bucket()

    monkeypatch.setattr(hooks_module, "store_of", store_of)
    settings = Settings(paths=("s3://b/*",), store=Store(endpoint="http://former:9000"))
    identity = File(1, "", 100).identity
    places = ("http://former:9000", "http://former:9000", "http://now:9000")

    for number, endpoint in enumerate(places):
        settings.change(paths=("s3://b/*",), store=Store(endpoint=endpoint))
        split_id: SplitId = ("files", f"s3://b/{number}", 0)
        marks = {split_id: Mark(position=0, identity=identity)}
        assert settings.hooks.ends("files", [split_id], marks).keys() == {split_id}

    assert opened == ["http://former:9000", "http://now:9000"]


class Shelf:
    """A store whose answers a test sets; other files are gone."""

    def __init__(self, **answers: File | OSError) -> None:
        self.answers = {f"/{name}": answer for name, answer in answers.items()}
        self.asked: list[str] = []

    def stat(self, path: str) -> File | None:
        self.asked.append(path)
        match self.answers.get(path):
            case OSError() as error:
                raise error
            case found:
                return found


LISTED = File(1, "", 100).identity


def looked_at(settings: Settings, store: Shelf, *names: str) -> set[str]:
    """Return the names of those files of which the ends are known."""
    settings.hooks._opened = lambda: store  # type: ignore[method-assign, assignment, return-value]
    marks = {of(name): Mark(position=0, identity=LISTED) for name in names}
    return {str(split[1])[1:] for split in settings.hooks.ends("files", list(marks), marks)}


def of(name: str) -> SplitId:
    return ("files", f"/{name}", 0)


def test_a_file_that_cannot_be_looked_at_keeps_no_other_waiting() -> None:
    store, settings = Shelf(a=OSError("too slow"), b=File(1, "/b", 100)), Settings()

    with pytest.raises(TransientDiscoveryError) as caught:
        looked_at(settings, store, "a", "b")

    assert str(caught.value) == ("cannot look at /a: too slow. Check the store and its credentials")
    assert caught.value.scope == "files"
    store.answers["/a"] = File(1, "/a", 100)
    assert looked_at(settings, store, "a", "b") == {"a", "b"}
    assert store.asked == ["/a", "/b", "/a"], "what was answered is known"


def test_a_file_that_comes_back_is_not_said_to_be_lost() -> None:
    said = list[Problem | None]()
    store, settings = Shelf(), Settings(said)
    assert looked_at(settings, store, "a") == set()

    store.answers["/a"] = File(1, "/a", 100)

    assert looked_at(settings, store, "a") == {"a"}
    settings.hooks.note_look(StreamOffset(positions={of("a"): 0}), Look())
    assert said == []


@pytest.mark.parametrize("now", [{}, {"a": File(2, "/a", 100)}], ids=["deleted", "changed"])
def test_a_lost_file_that_may_be_skipped_is_counted_and_left_to_the_task(
    now: dict[str, File],
) -> None:
    said = list[Problem | None]()
    store, settings = Shelf(**now), Settings(said)
    assert looked_at(settings, store, "a") == set()
    settings.change(on_loss=OnFileLoss.SKIP)

    assert looked_at(settings, store, "a") == {"a"}

    assert settings.hooks.numbers() == {SKIPPED_BLOCKS: 1}
    settings.hooks.note_look(StreamOffset(positions={of("a"): 0}), Look())
    assert said == []


def test_what_was_counted_is_forgotten_when_it_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept must not grow with all files that ever were."""
    monkeypatch.setattr(hooks_module, "_KEPT", 2)
    store, settings = Shelf(), Settings(on_loss=OnFileLoss.SKIP)

    for day in range(5):
        looked_at(settings, store, f"a{day}")

    assert settings.hooks.numbers() == {SKIPPED_BLOCKS: 5}
    assert len(settings.hooks._counted) <= 3


def test_columns_that_were_inferred_at_another_moment_are_refused() -> None:
    """A new file may have come in between, with other columns than those of the state."""
    store, settings = Shelf(a=File(1, "/a", 100)), Settings()
    settings.change(schema="value STRING")
    assert looked_at(settings, store, "a") == {"a"}
    settings.change(schema="value STRING, more INT")

    with pytest.raises(InvalidSpecError, match="value STRING, more INT"):
        looked_at(settings, store, "a")
