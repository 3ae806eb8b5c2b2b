"""Small choices of a driver and its tasks, each of which has a case that is seldom met."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from balanced_source.api import Position, SplitId
from balanced_source.documents.journal import FetchLimits, RecordKey
from balanced_source.errors import ContractViolationError, DiscoveryError
from balanced_source.host import SplitRange
from balanced_source.host.ends import SplitEnd
from balanced_source.host.journaling import Share
from balanced_source_spark.contract.half import Query
from balanced_source_spark.ends import Ends
from balanced_source_spark.instance import Instance
from balanced_source_spark.journal.buffer import CHUNK_BYTES, Buffer
from balanced_source_spark.journal.reading import Reading
from balanced_source_spark.kafka.skipping import _has_records
from balanced_source_spark.why_nothing import _silent_servers
from support.tapes import Shelf, TapeHalf

A, B = ("shelf", "a"), ("shelf", "b")


@pytest.mark.parametrize(
    ("uids", "pods", "is_gone"),
    [
        (("u1", "u2"), ("p", "p"), True),
        (("u1", "u1"), ("p", "p"), False),
        (("u1", "u2"), ("p", "q"), False),
        (("", "u2"), ("p", "p"), False),
        (("u1", ""), ("p", "p"), False),
        (("", ""), ("", ""), False),
    ],
    ids=["replaced", "itself", "other pod", "unknown uid", "no own uid", "no pods"],
)
def test_a_pod_is_gone_when_another_one_has_its_name(
    uids: tuple[str, str], pods: tuple[str, str], *, is_gone: bool
) -> None:
    """True is certain: what has no uid may still run."""
    former = Instance(id="former", pod=pods[0], uid=uids[0])

    assert former.is_gone(seen_from=Instance(id="me", pod=pods[1], uid=uids[1])) is is_gone


def test_servers_without_an_answer_are_named_in_order() -> None:
    """The same words each time; what has no name is left out."""
    channel: Any = SimpleNamespace(undiscovered=("c", "", "a", "b"))

    assert _silent_servers(channel).startswith("no server of the source has answered for a, b, c.")


@pytest.mark.parametrize(
    ("start", "end", "has_records"),
    [(None, None, False), (0, None, False), (None, 1, True), (1, 1, False), (1, 2, True)],
)
def test_a_range_has_records_if_it_ends_behind_its_start(
    start: Position, end: Position, *, has_records: bool
) -> None:
    assert _has_records(SplitRange(split_id=("c", "t", 0), start=start, end=end)) is has_records


def test_rows_that_become_large_are_made_of_few_records() -> None:
    """The size of a record shows only in its rows, which must not be many times `CHUNK_BYTES`."""
    sizes: list[int] = []

    def rows(records: Sequence[int]) -> pa.RecordBatch:
        sizes.append(len(records))
        return pa.RecordBatch.from_pydict({"x": [b"x" * (CHUNK_BYTES // 4)] * len(records)})

    buffer: Buffer[int] = Buffer(rows)
    for number in range(50):
        buffer.add(number)
    buffer.convert()
    buffer.close()

    assert sum(sizes) == 50
    assert 2 <= max(sizes) <= 4


def reading(stops: Mapping[SplitId, Position], **lengths: int) -> Reading:
    starts: dict[SplitId, Position] = {("shelf", name): None for name in lengths}
    limits = FetchLimits(wait_millis=20)
    share = Share(key=RecordKey("j", 1, 0), parallelism=1, limits=limits, starts=starts)
    half = TapeHalf(Shelf(lengths=dict(lengths)))
    return Reading(half, Query(client_id="c", read=None), {"tapes": {}}, share, stops)


@pytest.mark.parametrize(
    ("at", "stop", "is_at"),
    [(None, None, True), (None, 1, False), (1, None, True), (1, 1, True), (1, 2, False)],
)
def test_an_unknown_position_is_the_first_one(at: Position, stop: Position, *, is_at: bool) -> None:
    with reading({A: stop}, a=0) as made:
        made._at[A] = at

        assert made._is_at(A) is is_at


def test_a_split_that_has_ended_hides_no_other_one_that_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both have brought records in one poll."""
    with reading({A: 1, B: 1}, a=1, b=1) as made:
        monkeypatch.setattr(made._reader, "snapshot_split", lambda _: None)
        made._moved |= {A, B}
        made._settle_moved()

        assert made.is_done


def test_a_cluster_that_is_taken_out_while_it_is_asked_is_silent_no_more() -> None:
    """Its question is still open: others are known all the same."""
    answers, began = threading.Event(), threading.Event()

    def ask(scope: str, split_ids: Iterable[SplitId]) -> Mapping[SplitId, SplitEnd]:
        if scope == "slow":
            began.set()
            answers.wait(60)
        return {split_id: SplitEnd(end=7) for split_id in split_ids}

    slow, quick = ("slow", "t", 0), ("quick", "t", 0)
    ends = Ends(ask, fresh=0.0, patience=0.01)
    try:
        ends.get([slow, quick])
        assert began.wait(60)
        assert ends.silent >= {slow}
        while quick not in ends.get([quick]):
            pass
        assert slow not in ends.silent
    finally:
        answers.set()
        ends.close()


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (1, "ends of 1 split, such as c/t/0, are unknown after 0 s: it is on fire"),
        (3, "ends of 3 splits, such as c/t/0, are unknown after 0 s: it is on fire"),
    ],
)
def test_ends_that_stay_unknown_are_told_of_with_the_name_of_a_split(count: int, said: str) -> None:
    def ask(scope: str, _: Iterable[SplitId]) -> Mapping[SplitId, SplitEnd]:
        raise DiscoveryError("it is on fire", scope=scope)

    ends = Ends(ask, fresh=0.0, retry=0.0)
    try:
        with pytest.raises(DiscoveryError) as caught:
            ends.get_all([("c", "t", number) for number in range(count)], timeout=0.0)
    finally:
        ends.close()

    assert str(caught.value) == said


@pytest.mark.parametrize(("at", "stop"), [(None, 0), (0, 0), (None, 1), (1, 1)])
def test_a_split_up_to_its_stop_is_exact(at: Position, stop: Position) -> None:
    with reading({A: stop}, a=0) as made:
        made._at[A] = at

        made.check_exact()


def test_a_split_past_its_stop_is_not_exact() -> None:
    with reading({A: 0}, a=0) as made:
        made._at[A] = 1

        with pytest.raises(ContractViolationError, match=r"up to position 0, .* leads to 1"):
            made.check_exact()
