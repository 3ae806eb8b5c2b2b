"""What a driver says, asks and stores of several splits is in the order of their ids."""

from collections.abc import Mapping
from typing import Any

from structlog.testing import capture_logs

from balanced_source.api import STOP, Position, Problem, ProblemKey, SplitId
from balanced_source.documents.journal import FetchLimits, RecordKey
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.ends import Look
from balanced_source.host.journaling import Share
from balanced_source_spark.contract.half import Query
from balanced_source_spark.journal.reading import Reading, fetch
from balanced_source_spark.kafka.client_options import shown_by_spark
from balanced_source_spark.kafka.group_commits import GroupCommits
from balanced_source_spark.short_splits import ShortSplits, tell_short, unheard, without_times
from balanced_source_spark.why_nothing import undiscovered
from support.tapes import Shelf, TapeHalf

SIX: tuple[SplitId, ...] = tuple(("s", letter) for letter in "abcdef")
BASE = StreamOffset(positions=dict.fromkeys(SIX, 5), terms=dict.fromkeys(SIX, 7))
BACKWARDS: Mapping[SplitId, int] = dict.fromkeys(reversed(SIX), 3)


def test_clusters_that_did_not_answer() -> None:
    assert str(undiscovered(("b", "c", "a"), 5.0)).startswith("a, b, c did not answer within 5 s.")


def test_splits_that_are_shorter_than_what_was_read() -> None:
    """Those that are waited for come first, and no others."""
    found = unheard(BASE, Look(short=BACKWARDS), [*SIX[3:], ("s", "x")], timeout=5.0)

    assert str(found).startswith(
        "3 splits, s/d (read up to 5, ends at 3), s/e (read up to 5, ends at 3), s/f (read up to"
    )


def test_splits_that_stay_short_or_unchecked() -> None:
    problems: dict[ProblemKey, Problem | None] = {}
    splits = ShortSplits(problems.__setitem__, lasts=0.0, check_lasts=0.0)

    splits.note(BASE, Look(short=BACKWARDS, unchecked=BACKWARDS))

    short, unchecked = (problem.message for problem in problems.values() if problem is not None)
    assert short.startswith("6 splits, s/a (read up to 5, ends at 3), s/b (")
    assert unchecked.startswith("6 splits, s/a (read under leader epoch 7, now 3), s/b (")


def test_splits_that_a_batch_query_reads_less_of() -> None:
    attributes: Any = {s: {STOP: 9} for s in SIX}

    with capture_logs() as logs:
        tell_short(StreamOffset(positions=BACKWARDS, attributes=attributes))

    (line,) = logs
    assert line["splits"].startswith("6 splits, s/a (ends at 3, and the query at 9), s/b (")


def test_splits_of_which_no_time_is_known() -> None:
    found = without_times(frozenset(SIX), 5.0)

    assert str(found).startswith(
        "times of records are unknown after 5 s for 6 splits, such as s/a, so nothing"
    )


def test_secrets_that_spark_shows() -> None:
    names = ("f.pem", "b.pem", "d.pem")

    found = shown_by_spark({f"kafka.{name}": "x" for name in names})

    assert [text.split()[1] for text in found] == ["kafka.b.pem", "kafka.d.pem", "kafka.f.pem"]


def test_clusters_get_their_commits_in_turn() -> None:
    asked: list[tuple[str, Mapping[SplitId, int]]] = []
    commits = GroupCommits(lambda name, offsets: asked.append((name, offsets)), interval=3600)
    names = [f"cluster-{number}" for number in range(9)]

    commits._commit({(name, "t", 0): 7 for name in reversed(names)})
    commits.close()

    assert asked == [(name, {(name, "t", 0): 7}) for name in names]


def test_a_record_of_a_journal_has_its_splits_in_order() -> None:
    """Equal records are equal documents, in whatever order a task was given its splits."""
    starts: dict[SplitId, Position] = {("shelf", name): None for name in "bac"}
    share = Share(
        key=RecordKey("j", 1, 0), parallelism=1, limits=FetchLimits(wait_millis=20), starts=starts
    )
    half = TapeHalf(Shelf(lengths={"a": 3, "b": 3, "c": 3}, timed={"a", "b", "c"}))

    with Reading(half, Query(client_id="c", read=None), {"tapes": {}}, share, {}) as reading:
        record = fetch(reading, share.limits)

    assert [list(found) for found in (record.starts, record.ends, record.behind)] == [
        sorted(starts)
    ] * 3
