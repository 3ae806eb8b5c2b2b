"""Records that are gone: one problem per topic, and a count of what is never read."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import IDENTITY, STOP, Problem, ProblemKey
from balanced_source.connectors.kafka import (
    LISTED,
    KafkaCluster,
    KafkaReaderSettings,
    OnDataLoss,
)
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import FatalProblemError
from balanced_source.host import SplitRange
from balanced_source.host.ends import Look
from balanced_source_spark.kafka.data_loss import MOST_TOPICS, LossCounter, LossProblems

A, B, OTHER = ("c", "t", 0), ("c", "t", 1), ("d", "u", 0)
BASE = StreamOffset(positions={A: 5, B: 7, OTHER: None}, attributes={A: {STOP: 9}, B: {STOP: 9}})
FAIL = KafkaReaderSettings(
    clusters={"c": KafkaCluster(name="c", bootstrap_servers="b:9092")},
    on_data_loss=OnDataLoss.FAIL,
)
CONTINUE = replace(FAIL, on_data_loss=OnDataLoss.CONTINUE)


class Query:
    """Keeps problems; without an operator a fatal one ends the query."""

    def __init__(self, *, has_operator: bool = True) -> None:
        self.problems: dict[ProblemKey, Problem] = {}
        self.changes = 0
        self._has_operator = has_operator
        self.counter = LossCounter(lambda *_: {})
        self.losses = LossProblems(self, self.counter)

    def set_problem(self, key: ProblemKey, problem: Problem | None) -> None:
        self.changes += 1
        if problem is None:
            del self.problems[key]
        else:
            self.problems[key] = problem

    def check_problems(self) -> None:
        for problem in self.problems.values():
            if problem.is_fatal and not self._has_operator:
                raise FatalProblemError(problem.message, reason=problem.reason)

    def note(
        self, settings: KafkaReaderSettings = FAIL, *, base: StreamOffset = BASE, **seen: Any
    ) -> None:
        self.losses.note(base, Look(**seen), settings)


LOST: dict[str, dict[str, Any]] = {
    "recreated": {"recreated": frozenset({A, B})},
    "deleted": {"deleted": {A: 9, B: 9}},
    "truncated": {"cuts": {A: 2, B: 3}},
}


@pytest.mark.parametrize(
    ("kind", "settings", "skipped"),
    [
        ("recreated", CONTINUE, 6),
        ("deleted", CONTINUE, 6),
        ("truncated", CONTINUE, 0),
        ("recreated", FAIL, 0),
        ("deleted", FAIL, 0),
        ("truncated", FAIL, 0),
    ],
)
def test_only_records_that_are_skipped_with_consent_are_counted(
    kind: str, settings: KafkaReaderSettings, skipped: int
) -> None:
    """After a cut the records that are there now are read. The last ends were 9 and 9."""
    query = Query()
    query.note(settings, ends={A: 9, B: 9})

    query.note(settings, **LOST[kind])
    query.note(settings, **LOST[kind])

    assert query.counter.total == skipped
    assert list(query.problems) == [(kind, "c", "t")]
    assert query.changes == 1, "the same loss is told once"


def test_a_loss_that_lasts_does_not_hide_how_much_another_topic_loses() -> None:
    """People decide by the number whether they consent."""
    query = Query()
    query.note(FAIL, ends={A: 9, B: 9})
    query.note(FAIL, ends={A: 9, B: 9}, recreated=frozenset({OTHER}))
    later = replace(BASE, positions={**BASE.positions, A: 500})
    query.note(FAIL, base=later, ends={A: 520, B: 9}, recreated=frozenset({OTHER}))
    query.note(FAIL, base=later, recreated=frozenset({OTHER, A}))

    assert "partition 0 from offset 500 to 519" in query.problems["recreated", "c", "t"].message


def test_what_tasks_tell_of_a_deleted_topic_is_not_counted_twice() -> None:
    query = Query()
    query.note(CONTINUE, deleted={A: 9, B: 9})
    assert query.counter.total == 4 + 2

    query.counter.note_skipped([SplitRange(split_id=A, start=5, end=9)])
    assert query.counter.total == 4 + 2


def test_what_is_deleted_of_a_recreated_topic_counts_from_its_beginning() -> None:
    query = Query()
    query.note(CONTINUE, ends={A: 900, B: 7})
    query.note(CONTINUE, recreated=frozenset({A}))
    assert query.counter.total == 895

    query.counter.note_skipped([SplitRange(split_id=A, start=0, end=50)])
    assert query.counter.total == 895 + 50


@pytest.mark.parametrize("kind", LOST)
def test_a_problem_without_consent_ends_with_its_cause(kind: str) -> None:
    """With consent it stays, as the record of what is missing."""
    query = Query()

    query.note(FAIL, **LOST[kind])
    query.note(FAIL)
    assert query.problems == {}

    query.note(FAIL, **LOST[kind])
    query.note(CONTINUE, **LOST[kind])
    assert query.changes == 4, "the user has consented meanwhile"
    query.note(CONTINUE)
    assert list(query.problems) == [(kind, "c", "t")]


@pytest.mark.parametrize(
    ("kind", "skipped", "words"),
    [
        ("recreated", 8, "partition 0 from offset 7 to 10; partition 0 from offset 5 to 8"),
        ("deleted", 4, "partition 0 from offset 7 to 8; partition 0 from offset 5 to 8"),
        ("truncated", 0, "partition 0 from offset 2 to 6; partition 0 from offset 2 to 4"),
    ],
)
def test_a_topic_that_loses_records_once_more_is_told_once_more(
    kind: str, skipped: int, words: str
) -> None:
    """Before, the first loss of a topic was the only one that anybody heard of."""
    query = Query()
    query.note(CONTINUE, ends={A: 9, B: 9})
    of_a = {
        "recreated": {"recreated": frozenset({A})},
        "deleted": {"deleted": {A: 9}},
        "truncated": {"cuts": {A: 2}},
    }[kind]
    query.note(CONTINUE, **of_a)
    later = replace(
        BASE,
        positions={**BASE.positions, A: 7},
        terms={A: 4},
        attributes={A: {STOP: 9, IDENTITY: "the next topic"}},
    )
    query.note(CONTINUE, base=later, ends={A: 11, B: 9})

    query.note(CONTINUE, base=later, **of_a)
    query.note(CONTINUE, base=later, **of_a)

    assert query.changes == 2
    (problem,) = query.problems.values()
    assert words in problem.message, "the newest first, and what is missing since before"
    assert query.counter.total == skipped


def test_partitions_that_are_found_later_are_told_too() -> None:
    query = Query()
    query.note(CONTINUE, ends={A: 9, B: 9})
    query.note(CONTINUE, recreated=frozenset({A}))
    query.note(CONTINUE, recreated=frozenset({A, B}))
    query.note(CONTINUE, recreated=frozenset({B}))

    (problem,) = query.problems.values()
    assert "partition 1 from offset 7 to 8; partition 0 from offset 5 to 8" in problem.message
    assert (query.changes, query.counter.total) == (2, 6)


@pytest.mark.parametrize("kind", ["recreated", "deleted"])
def test_what_is_passed_over_in_several_micro_batches_is_counted_once(kind: str) -> None:
    query = Query()
    query.note(CONTINUE, ends={A: 9, B: 9})
    for position in (5, 7, 8):
        further = replace(BASE, positions={**BASE.positions, A: position})
        query.note(CONTINUE, base=further, **LOST[kind])
    assert (query.changes, query.counter.total) == (1, 6)


def test_the_same_log_may_be_cut_at_the_same_offset_again() -> None:
    """It was read again up to there, under another leader."""
    query = Query()
    for term in (1, 2, 3):
        query.note(CONTINUE, base=replace(BASE, terms={A: term}), cuts={A: 2})
    assert query.changes == 3


def test_lost_records_are_listed_by_partition() -> None:
    query = Query()

    query.note(cuts={B: 3, A: 2})

    (found,) = query.problems.values()
    assert "partition 0 from offset 2 to 4; partition 1 from offset 3 to 6" in found.message


def test_each_topic_has_a_problem_of_its_own() -> None:
    query = Query()

    query.note(FAIL, recreated=frozenset({OTHER, A}), deleted={B: 9})

    assert list(query.problems) == [
        ("recreated", "c", "t"),
        ("recreated", "d", "u"),
        ("deleted", "c", "t"),
    ]
    messages = [problem.message for problem in query.problems.values()]
    assert "partition 0" in messages[0]
    assert "partition 1" not in messages[0]
    assert "partition 1 from offset 7 to 8" in messages[2]


@pytest.mark.parametrize(("settings", "ends_query"), [(FAIL, True), (CONTINUE, False)])
def test_without_an_operator_a_loss_without_consent_ends_the_query(
    settings: KafkaReaderSettings, *, ends_query: bool
) -> None:
    query = Query(has_operator=False)
    query.note(settings)

    if ends_query:
        with pytest.raises(FatalProblemError):
            query.note(settings, **LOST["recreated"])
    else:
        query.note(settings, **LOST["recreated"])


def test_of_a_topic_that_loses_records_each_day_the_newest_gaps_are_named() -> None:
    """The others are counted: a message, and the driver's memory, have an end."""
    query = Query()
    for day in range(50):
        base = replace(BASE, terms={A: day}, positions={**BASE.positions, A: 100 + day})
        query.note(CONTINUE, base=base, cuts={A: 90})

    (problem,) = query.problems.values()
    assert "partition 0 from offset 90 to 148; partition 0 from offset 90 to 147" in problem.message
    assert "; and 40 more partitions" in problem.message
    assert len(query.losses._reported["truncated", "c", "t"].gaps) == LISTED


def test_the_losses_of_the_newest_topics_are_reported() -> None:
    """Topics may be named by day, and be lost each day."""
    query = Query()
    for day in range(3 * MOST_TOPICS):
        split_id = ("c", f"day-{day}", 0)
        base = StreamOffset(positions={split_id: 5, A: 5})
        query.note(CONTINUE, base=base, ends={split_id: 9, A: 9})
        query.note(CONTINUE, base=base, deleted={split_id: 9})

    assert len(query.problems) == len(query.losses._reported) == MOST_TOPICS
    assert ("vanished", "c", f"day-{3 * MOST_TOPICS - 1}") in query.problems
    assert query.losses._before.keys() <= {split_id, A}
    assert query.counter.total == 4 * 3 * MOST_TOPICS


def test_while_a_loss_lasts_the_ends_of_splits_that_have_left_are_forgotten() -> None:
    query = Query()
    for day in range(50):
        split_id = ("c", f"day-{day}", 0)
        base = StreamOffset(positions={split_id: 5, OTHER: 5})
        query.note(FAIL, base=base, ends={split_id: 9}, recreated=frozenset({OTHER}))

    assert query.losses._before == {split_id: 9}


def test_a_topic_of_which_nothing_was_read_has_lost_everything_up_to_its_last_end() -> None:
    query = Query()
    query.note(CONTINUE, ends={OTHER: 6})

    query.note(CONTINUE, recreated=frozenset({OTHER}))

    assert "partition 0 from offset 0 to 5" in query.problems["recreated", "d", "u"].message
    assert query.counter.total == 6
