"""Splits that are gone, or shorter than what was read of them.

Told, and never in the way of the others.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from balanced_source.connectors.kafka import LATEST, OnDataLoss
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import DiscoveryError, FatalProblemError
from balanced_source.host.ends import Look
from balanced_source.reasons import Reason
from balanced_source_adapters.connectors import installed
from balanced_source_spark.contract.hooks import PlannerHooks
from balanced_source_spark.gone_splits import GoneSplits
from support.lines_query import KIND, LinesQuery, registration
from support.planned_query import PlannedQuery
from support.world import Broker, kafka_source


@pytest.fixture
def query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LinesQuery]:
    monkeypatch.setitem(installed()._registered, KIND, {"page": registration()})
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
        match=r"1 split, .*/a\.txt \(read up to 9, ends at 3\): the source has less of them",
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

    query.planner.prepareForTriggerAvailableNow()
    while query.trigger():
        pass
    query.close()

    assert query.records.total() == 21
    assert set(query.records.values()) == {1}


A, B = ("s", "a"), ("s", "b")
BASE = StreamOffset(positions={A: 5, B: 7})


class Told:
    """What `GoneSplits` says of a connector's splits."""

    def __init__(self, *, skips: bool = False, tells: bool = False) -> None:
        self.problems: dict[object, object] = {}
        self.is_fatal = False
        hooks = type(
            "Hooks",
            (PlannerHooks,),
            {
                "ends": lambda *_: {},
                "may_skip": lambda _: skips,
                **({"note_look": lambda *_: None} if tells else {}),
            },
        )()
        self.splits = GoneSplits(self._set, self._check, hooks, lasts=0.0)

    def _set(self, key: object, problem: object) -> None:
        if problem is None:
            del self.problems[key]
        else:
            self.problems[key] = problem

    def _check(self) -> None:
        for problem in self.problems.values():
            if problem.is_fatal:  # type: ignore[attr-defined]
                raise FatalProblemError(str(problem), reason="r")

    @property
    def only(self) -> object:
        (problem,) = self.problems.values()
        return problem


GONE = {
    r"s/a \(from 5 on\): they were deleted and created again": Look(recreated=frozenset({A})),
    r"s/a \(2 to 5\): they were cut": Look(cuts={A: 2}),
    r"2 splits, s/a \(5 to 9\), s/b \(7 to 9\): they were deleted": Look(deleted={A: 9, B: 9}),
}


@pytest.mark.parametrize(("text", "seen"), GONE.items(), ids=["recreated", "cut", "deleted"])
def test_records_that_are_gone_end_the_query_of_a_connector_that_does_not_tell_itself(
    text: str, seen: Look
) -> None:
    told = Told()

    with pytest.raises(FatalProblemError, match=text):
        told.splits.note(BASE, seen)

    assert told.only.reason is Reason.SPLITS_LOST  # type: ignore[attr-defined]


@pytest.mark.parametrize("seen", GONE.values(), ids=["recreated", "cut", "deleted"])
def test_a_connector_that_skips_gets_a_warning_and_one_that_tells_itself_nothing(
    seen: Look,
) -> None:
    skipping, telling = Told(skips=True), Told(tells=True)

    skipping.splits.note(BASE, seen)
    telling.splits.note(BASE, seen)

    assert skipping.only.reason is Reason.SPLITS_SKIPPED  # type: ignore[attr-defined]
    assert telling.problems == {}
    skipping.splits.note(BASE, Look())
    assert skipping.problems == {}


def test_a_short_split_is_told_of_when_that_lasts() -> None:
    told, patient = Told(tells=True), Told()
    patient.splits = GoneSplits(patient._set, patient._check, patient.splits._hooks, lasts=60.0)

    for each in (told, patient):
        each.splits.note(BASE, Look(short={A: 3}))

    assert re.search(r"s/a \(read up to 5, ends at 3\)", told.only.message)  # type: ignore[attr-defined]
    assert patient.problems == {}
    told.splits.note(BASE, Look())
    assert told.problems == {}
