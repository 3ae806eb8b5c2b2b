"""A hybrid source hands everything on that it is asked, so that no part keeps a neutral default."""

from dataclasses import fields, replace
from functools import partial
from typing import Any, cast

import pytest

from balanced_source.api import (
    Problem,
    ProblemKey,
    Source,
    SourceEvent,
    SplitEnumerator,
    SplitEnumeratorContext,
    SplitId,
)
from balanced_source.connectors.files import File, FilesSource, Format, OnFileLoss
from balanced_source.connectors.hybrid import HybridSource, HybridSplitEnumerator
from balanced_source.connectors.hybrid.context import PartContext
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host import SplitRange
from balanced_source.host.ends import Look, Mark
from balanced_source_spark.contract.half import Query, half_of
from balanced_source_spark.contract.hooks import PlannerHooks
from balanced_source_spark.hybrid.half import Reads
from balanced_source_spark.hybrid.hooks import HybridHooks
from balanced_source_spark.hybrid.options import PartRead
from support.hybrid_world import two_parts
from support.planner_context import CONTEXT
from unit.hybrid.test_enumerator import enumerator_of

FIRST = two_parts(1, 1).names[0]


def asked_of(base: type) -> set[str]:
    """Return the names of what is asked of an object of a class."""
    return {name for kind in base.__mro__[:-1] for name in vars(kind) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("base", "own"),
    [
        (Source, HybridSource),
        (SplitEnumerator, HybridSplitEnumerator),
        (SplitEnumeratorContext, PartContext),
        (PlannerHooks, HybridHooks),
    ],
)
def test_no_default_answers_for_the_parts(base: type, own: type) -> None:
    assert asked_of(base) - vars(own).keys() == set()


def hooks(*formats: str, **changes: Any) -> HybridHooks:
    """Return the hooks of a source whose parts are files of these formats."""
    reads: Reads = tuple(
        PartRead(
            name=f"files-{number}",
            kind="files",
            read=half_of("files").read_options(
                {"path": "/in", "fileformat": name, "schema": "a STRING"}
            ),
        )
        for number, name in enumerate(formats)
    )
    query = Query(client_id="me", read=cast("Any", reads))
    context: Any = replace(CONTEXT, query=query, **changes)
    return HybridHooks(context)


def test_each_part_says_which_of_its_splits_can_be_cut() -> None:
    """A file that is read as a whole by one reader would be cut for another one in vain."""
    asked = hooks("json", "binary")
    path = "/in/a"

    assert asked.may_cut(("files-0", "files", path, 0))
    assert not asked.may_cut(("files-0", "files", f"{path}.gz", 0))
    assert not asked.may_cut(("files-1", "files", path, 0))


def test_only_splits_that_readers_ask_for_are_shared_out_by_speed() -> None:
    """What a reader owns has to be read by it, so no other one waits for its next splits."""
    block, partition, other = ("files-0", "f"), ("kafka", "main", "orders", 0), ("odd", 7)
    asked = hooks("json")
    asked._parts |= {"kafka": half_of("kafka").hooks(CONTEXT), "odd": Odd()}

    assert set(asked.asked_for([block, partition, other])) == {block}, "odd ones do not say"
    assert Odd().asked_for([other]) is None


def test_what_tasks_have_skipped_is_told_to_its_part() -> None:
    told: dict[str, list[SplitRange]] = {}
    asked = hooks("json", "json")
    for name in ("files-0", "files-1"):
        part: Any = Odd()
        part.note_skipped = partial(told.__setitem__, name)
        asked._parts[name] = part

    asked.note_skipped([SplitRange(split_id=("files-1", "files", "/in/a", 0), start=3, end=5)])

    piece = SplitRange(split_id=("files", "/in/a", 0), start=3, end=5)
    assert {name: list(ranges) for name, ranges in told.items()} == {"files-1": [piece]}


def test_an_event_for_readers_reaches_the_hooks_of_its_part() -> None:
    told: list[tuple[int, SourceEvent]] = []
    asked, part = hooks("json", "json"), cast("Any", Odd())
    part.handle_source_event = lambda *event: told.append(event)
    asked._parts["files-1"] = part

    asked.handle_source_event(3, SourceEvent(name="end", payload={"part": "files-1", "payload": 7}))

    assert told == [(3, SourceEvent(name="end", payload=7))]


@pytest.mark.parametrize("payload", [None, "files-1", ["part"], {"part": "files-9"}, {}])
def test_an_event_for_no_part_is_told_and_ends_no_query(
    payload: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    hooks("json", "json").handle_source_event(3, SourceEvent(name="end", payload=payload))

    assert "this event of the enumerator is not expected" in capsys.readouterr().out


def test_a_loss_in_one_part_does_not_hide_that_of_another() -> None:
    """Two parts may have files, and each tells of its own ones."""
    told: dict[ProblemKey, Problem | None] = {}
    settings = FilesSource(paths=("/",), kind_of_file=Format.JSON).reader_settings()
    parts = {"hybrid": {"files-0": settings, "files-1": settings}}
    asked = hooks(
        "json", "json", set_problem=told.__setitem__, settings=parts.copy, known_settings=parts.copy
    )
    lost: list[SplitId] = [(f"files-{number}", "files", "/in/gone", 0) for number in (0, 1)]
    identity = File(1, "", 100).identity
    marks = {split_id: Mark(position=0, identity=identity) for split_id in lost}

    for split_id in lost:
        asked.ends(asked.scope_of(split_id), [split_id], marks)
    asked.note_look(StreamOffset(positions=dict.fromkeys(lost, 0)), Look())

    assert told.keys() == {("files", "lost", "files-0"), ("files", "lost", "files-1")}
    assert all(problem is not None and "/in/gone" in problem.message for problem in told.values())


def test_a_part_sees_all_that_a_look_has_found_of_its_splits_and_nothing_of_others() -> None:
    """Each field: hooks of a part may use any of them, as they could alone."""
    told: dict[str, Look] = {}
    asked = hooks("json", "json")
    for name in ("files-0", "files-1"):
        part: Any = Odd()
        part.note_look = lambda _, look, name=name: told.__setitem__(name, look)
        asked._parts[name] = part
    names = [field.name for field in fields(Look)]

    def found(*split_ids: SplitId) -> Look:
        values = {n: dict.fromkeys(split_ids, at) for at, n in enumerate(names)}
        return Look(**{**values, "recreated": frozenset(split_ids)})  # type: ignore[arg-type]

    ids: list[SplitId] = [(f"files-{number}", "files", f"/in/{number}", 0) for number in (0, 1)]
    asked.note_look(StreamOffset(positions=dict.fromkeys(ids, 0)), found(*ids))

    assert told == {str(split_id[0]): found(split_id[1:]) for split_id in ids}


def test_the_policy_of_the_part_that_is_read_counts_also_while_no_split_is_held() -> None:
    strict, lenient = (
        FilesSource(paths=("/",), kind_of_file=Format.JSON, on_loss=on_loss).reader_settings()
        for on_loss in OnFileLoss
    )
    parts = {"hybrid": {"files-0": strict, "files-1": lenient}}
    asked = hooks("json", "json", known_settings=parts.copy)
    assert not asked.may_skip(), "both may be read"

    for number, may_skip in ((1, True), (0, False)):
        held = StreamOffset(positions={(f"files-{number}", "files", "/in/a", 0): 0})
        for base in (held, StreamOffset()):
            asked.note_look(base, Look())
            assert asked.may_skip() is may_skip


class Odd(PlannerHooks):
    """Hooks of a connector that says nothing of its own."""

    def ends(self, *_: Any) -> dict[Any, Any]:
        return {}


def test_the_lag_is_unknown_before_the_last_part() -> None:
    """No one counts the records of a part that has not begun: they are not zero."""
    asked = hooks("json", "json")
    first, last = ("files-0", "files", "/in/a", 0), ("files-1", "files", "/in/a", 0)

    assert not asked.are_all_unread([first])
    assert not asked.are_all_unread([first, last])
    assert not asked.are_all_unread([]), "one part is read, and the next one has not begun"
    assert asked.are_all_unread([last])
    asked._parts["files-1"] = hooks("json", "json")
    assert not asked.are_all_unread([last]), "the part decides"


def heard(enumerator: HybridSplitEnumerator, name: str) -> list[Any]:
    """Return what the present part will be told by a method, after which it has ended."""
    told: list[Any] = []
    ended: Any = enumerator.part
    setattr(ended, name, lambda *arguments: told.append(arguments))
    ended.is_finished = lambda: bool(told)
    return told


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("notify_checkpoint_complete", (7,), (7,)),
        ("handle_loads", (), ()),
        (
            "handle_source_event",
            (0, SourceEvent(name="end", payload={"part": FIRST, "payload": 1})),
            (0, SourceEvent(name="end", payload=1)),
        ),
    ],
)
def test_the_next_part_begins_whatever_ends_the_one_before(
    name: str, arguments: tuple[Any, ...], expected: tuple[Any, ...]
) -> None:
    """No other call may follow: a source would stand still without a word."""
    enumerator = enumerator_of(two_parts(1, 1))
    told = heard(enumerator, name)

    getattr(enumerator, name)(*arguments)

    assert told == [expected]
    assert enumerator.stage == enumerator.source.names[1]
