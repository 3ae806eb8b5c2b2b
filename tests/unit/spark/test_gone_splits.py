"""Splits that are gone, or shorter than what was read of them.

Told, and never in the way of the others.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from balanced_source.api import Problem, ProblemKey
from balanced_source.connectors.kafka import LATEST, OnDataLoss
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import DiscoveryError, FatalProblemError
from balanced_source.host.ends import Look
from balanced_source.reasons import Reason
from balanced_source_adapters.registrations import registered
from balanced_source_spark.contract.checked_hooks import hooks_of
from balanced_source_spark.contract.half import Query
from balanced_source_spark.contract.hooks import PlannerHooks
from balanced_source_spark.hybrid.hooks import HybridHooks
from balanced_source_spark.short_splits import ShortSplits, unheard
from support.lines_query import KIND, LinesQuery, registration
from support.planned_query import PlannedQuery
from support.planner_context import CONTEXT
from support.world import Broker, kafka_source


@pytest.fixture
def query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LinesQuery]:
    monkeypatch.setitem(registered()._by_kind, KIND, {"page": registration()})
    write(tmp_path, "a", "b")
    query = LinesQuery(tmp_path)
    yield query
    query.planner.stop()


def write(folder: Path, *names: str, count: int = 3) -> None:
    for name in names:
        (folder / f"{name}.txt").write_text("".join(f"{name}{n}\n" for n in range(count)))


def lines(*names: str, count: int = 3) -> list[str]:
    return [f"{name}{n}" for name in names for n in range(count)]


def test_files_that_were_read_and_deleted_hold_up_no_other(query: LinesQuery) -> None:
    query.run()
    write(query.folder, "c")
    query.begin()
    query.run()
    (query.folder / "a.txt").unlink()
    write(query.folder, "d")
    query.begin()

    query.run()

    assert sorted(query.lines) == lines("a", "b", "c", "d")


def test_a_file_that_is_shorter_than_what_was_read_ends_such_a_query_in_words(
    query: LinesQuery,
) -> None:
    query.run()
    write(query.folder, "a", count=1)
    write(query.folder, "c")
    query.begin(startTimeoutSeconds="1")

    with pytest.raises(
        DiscoveryError,
        match=r"1 split, .*/a\.txt \(read up to 9, ends at 3\): the source has less than",
    ):
        query.run()


@pytest.mark.parametrize("is_bounded", [True, False])
@pytest.mark.parametrize("interval", [None, 0.05], ids=["one look", "many looks"])
def test_topics_that_were_read_and_deleted_hold_up_no_other(
    *, is_bounded: bool, interval: float | None
) -> None:
    broker = Broker(is_bounded=is_bounded)
    for topic in ("t", "u"):
        broker.create("c", topic, [0], end=7)
    source = kafka_source(
        "c",
        stopping_offsets=LATEST if is_bounded else None,
        discovery_interval=interval,
        on_data_loss=OnDataLoss.FAIL,
    )
    query = PlannedQuery(source=source, broker=broker)
    query.trigger_until(lambda: query.records.total() == 14, "all to be read")
    broker.delete([("c", "t", 0)])
    broker.create("c", "v", [0], end=7)
    query.restart()

    query.available_now()
    query.close()

    assert query.records.total() == 21
    assert set(query.records.values()) == {1}


CONTEXT_OF_NO_PARTS: Any = replace(CONTEXT, query=Query(client_id="me", read=cast("Any", ())))

A, B = ("s", "a"), ("s", "b")
BASE = StreamOffset(positions={A: 5, B: 7})


class Told:
    """What planning is told of a connector's splits."""

    def __init__(self, *, skips: bool = False, tells: bool = False) -> None:
        self.problems: dict[ProblemKey, Problem] = {}
        methods = {"ends": lambda *_: {}, "may_skip": lambda _: skips}
        own = {"note_look": lambda *_: None} if tells else {}
        made = type("Hooks", (PlannerHooks,), {**methods, **own})()
        half: Any = type("Half", (), {"hooks": lambda *_: made})()
        context = replace(CONTEXT, set_problem=self.set, check_problems=self._check)
        self.hooks = hooks_of(half, context, connector="odd")

    def set(self, key: ProblemKey, problem: Problem | None) -> None:
        if problem is None:
            self.problems.pop(key, None)
        else:
            self.problems[key] = problem

    def _check(self) -> None:
        for problem in self.problems.values():
            if problem.is_fatal:
                raise FatalProblemError(problem.message, reason=problem.reason)

    @property
    def only(self) -> Problem:
        (problem,) = self.problems.values()
        return problem


GONE = {
    r"s/a \(from 5 on\): deleted and created again": Look(recreated=frozenset({A})),
    r"s/a \(2 to 5\): cut before": Look(cuts={A: 2}),
    r"2 splits, s/a \(5 to 9\), s/b \(7 to 9\): deleted": Look(deleted={A: 9, B: 9}),
}


@pytest.mark.parametrize(("text", "seen"), GONE.items(), ids=["recreated", "cut", "deleted"])
def test_records_that_are_gone_end_the_query_of_a_connector_that_does_not_tell_itself(
    text: str, seen: Look
) -> None:
    told = Told()

    with pytest.raises(FatalProblemError, match=text):
        told.hooks.note_look(BASE, seen)

    assert told.only.reason is Reason.SPLITS_LOST


@pytest.mark.parametrize("seen", GONE.values(), ids=["recreated", "cut", "deleted"])
def test_a_connector_that_skips_gets_a_warning_and_one_that_tells_itself_nothing(
    seen: Look,
) -> None:
    skipping, telling = Told(skips=True), Told(tells=True)

    skipping.hooks.note_look(BASE, seen)
    telling.hooks.note_look(BASE, seen)

    assert skipping.only.reason is Reason.SPLITS_SKIPPED
    assert telling.problems == {}
    skipping.hooks.note_look(BASE, Look())
    assert skipping.problems == {}


def test_a_short_split_is_told_of_when_that_lasts() -> None:
    told, patient = Told(tells=True), Told()
    splits = ShortSplits(told.set, lasts=0.0)
    ShortSplits(patient.set, lasts=60.0).note(BASE, Look(short={A: 3}))

    splits.note(BASE, Look(short={A: 3}))

    assert re.search(r"s/a \(read up to 5, ends at 3\)", told.only.message)
    assert patient.problems == {}
    splits.note(BASE, Look())
    assert told.problems == {}


def test_a_query_that_cannot_end_names_the_first_of_the_splits_that_it_waits_for() -> None:
    """The same one at each attempt, in whatever order they are found."""
    found = unheard(BASE, Look(), [B, A], timeout=5.0)

    assert str(found).startswith("ends of 2 splits, such as s/a, are unknown after 5 s: ")


def test_a_split_whose_log_cannot_be_checked_is_told_of_when_that_lasts() -> None:
    """Its servers were restored from an older copy, and no check can say what is the same."""
    told, patient = Told(tells=True), Told()
    splits = ShortSplits(told.set, check_lasts=0.0)
    unchecked = Look(unchecked={A: 3})
    base = replace(BASE, terms={A: 7})
    ShortSplits(patient.set, lasts=0.0).note(base, unchecked)

    splits.note(base, unchecked)

    assert "s/a (read under leader epoch 7, now 3): no leader can" in told.only.message
    assert patient.problems == {}
    splits.note(base, Look())
    assert told.problems == {}


def test_a_part_of_a_hybrid_source_is_told_of_as_well() -> None:
    """Its hooks are checked like those of any source, so what they do not tell is told for them."""
    told = Told()
    hybrid = HybridHooks(CONTEXT_OF_NO_PARTS)
    hybrid._parts["first"] = told.hooks
    outer = StreamOffset(positions={("first", *A): 5})

    with pytest.raises(FatalProblemError, match=r"s/a \(5 to 9\): deleted"):
        hybrid.note_look(outer, Look(deleted={("first", *A): 9}))


def test_planning_tells_of_short_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a log that was cut, by a broker that cannot check that."""
    monkeypatch.setattr("balanced_source_spark.short_splits.ShortSplits.__init__", _impatient)
    broker = Broker()
    broker.create("c", "t", [0], end=7)
    query = PlannedQuery(source=kafka_source("c"), broker=broker)
    query.trigger_until(lambda: query.records.total() == 7, "all to be read")
    query.admin.answers_checks = False

    broker.ends["c", "t", 0] = 3
    query.trigger_until(lambda: bool(_shrunk(query)), "the problem")

    assert "c/t/0 (read up to 7, ends at 3): the source has less" in _shrunk(query)[0].message
    broker.ends["c", "t", 0] = 9
    query.trigger_until(lambda: query.records.total() == 9, "it has grown again")
    assert _shrunk(query) == []
    query.close()


def _impatient(self: Any, set_problem: Any) -> None:
    self._set_problem, self._lasts, self._since = set_problem, 0.0, {}
    self._check_lasts, self._unchecked_since = 60.0, {}


def _shrunk(query: PlannedQuery) -> list[Problem]:
    problems = query.planner._runtime.problems
    return [problem for problem in problems if problem.reason == Reason.SPLIT_SHRUNK]
