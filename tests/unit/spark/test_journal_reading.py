"""What a task holds back until its range is sealed: in memory, and on disk beyond that."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from balanced_source.api import InputStatus, SourceEvent
from balanced_source.documents.journal import FetchLimits, RecordKey
from balanced_source.errors import ContractViolationError, ForeignJournalError, JournalError
from balanced_source.host.journaling import Share
from balanced_source_spark.contract.half import Query
from balanced_source_spark.journal import reading as reading_module
from balanced_source_spark.journal.buffer import CHUNK, CHUNK_BYTES, Buffer
from balanced_source_spark.journal.folding import Folding
from balanced_source_spark.journal.reading import Reading, TaskContext, fetch
from balanced_source_spark.journal.task import JournalTaskReader
from balanced_source_spark.journal_options import BATCH_LIFE, JournalOptions
from balanced_source_spark.journal_stores.folder import FolderJournal
from balanced_source_spark.partition import ReaderPartition
from support.tapes import SHELF, Shelf, TapeHalf

LARGE = b"x" * CHUNK_BYTES
NO_LIMIT = FetchLimits(wait_millis=20)


def share(limits: FetchLimits = NO_LIMIT, **positions: int) -> Share:
    starts = {(SHELF, name): position for name, position in positions.items()}
    return Share(key=RecordKey("j", 1, 3), parallelism=5, limits=limits, starts=starts)


def reading(shelf: Shelf, part: Share) -> Reading:
    query = Query(client_id="c", read=None)
    return Reading(TapeHalf(shelf), query, {"tapes": {}}, part, {})


@pytest.mark.parametrize("in_memory", [0, 10**9])
def test_rows_come_out_in_their_order_from_memory_and_from_disk(in_memory: int) -> None:
    buffer: Buffer[int] = Buffer(
        lambda r: pa.RecordBatch.from_pydict({"n": r}), in_memory=in_memory
    )
    count = 3 * CHUNK + 5
    for number in range(count):
        buffer.add(number)

    assert [n for batch in buffer.batches() for n in batch["n"].to_pylist()] == list(range(count))
    assert buffer.bytes == 8 * count
    buffer.close()


def test_a_record_holds_the_read_range_only() -> None:
    with reading(Shelf(lengths={"a": 7, "b": 4}), part := share(a=2, b=4)) as made:
        record = fetch(made, part.limits)

    assert (record.starts, record.ends) == ({(SHELF, "a"): 2}, {(SHELF, "a"): 7})
    assert (record.has_more, record.records, record.finished) == (False, 5, frozenset())


def test_only_splits_that_are_left_to_read_are_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader may still speak of one that has ended."""
    part = share(FetchLimits(max_records=3, wait_millis=20), a=0)
    told = {(SHELF, "a"): 5, (SHELF, "ended"): 7}
    with reading(Shelf(lengths={"a": 7}), part) as made:
        monkeypatch.setattr(made._reader, "millis_behind", lambda: told)
        record = fetch(made, part.limits)

    assert record.behind == {(SHELF, "a"): 5}


def test_a_limit_leaves_the_rest_for_the_next_micro_batch() -> None:
    part = share(FetchLimits(max_records=3, wait_millis=20), a=0)
    with reading(Shelf(lengths={"a": 7}), part) as made:
        record = fetch(made, part.limits)

    assert (record.ends, record.has_more, record.records) == ({(SHELF, "a"): 3}, True, 3)


def test_bytes_are_a_limit_too() -> None:
    part = share(FetchLimits(max_bytes=1, wait_millis=20), a=0)
    with reading(Shelf(lengths={"a": 10 * CHUNK}), part) as made:
        record = fetch(made, part.limits)

    assert (record.has_more, record.records) == (True, 1)


@dataclass(frozen=True)
class Document:
    """A record whose size only its row tells."""

    text: bytes


@pytest.mark.parametrize(
    ("small", "wrap"),
    [(5000, bytes), (5000, lambda t: (1, t)), (5000, lambda t: {"t": t}), (0, Document)],
)
def test_large_records_are_counted_before_many_of_them_are_in_memory(
    small: int, wrap: Callable[[bytes], Any]
) -> None:
    made: list[int] = []

    def rows(records: Sequence[Any]) -> pa.RecordBatch:
        made.append(len(records))
        return pa.RecordBatch.from_pydict(
            {"size": [LARGE if wrap(LARGE) == r else b"s" for r in records]}
        )

    buffer: Buffer[Any] = Buffer(rows)
    for _ in range(small):
        buffer.add(wrap(b"s"))
    while buffer.bytes < CHUNK_BYTES:
        buffer.add(wrap(LARGE))

    assert max(made) == (CHUNK if small else 1), "small records come in large batches"
    assert buffer.count <= small + 1
    buffer.close()


class Counting(TapeHalf):
    """Counts how often all splits, and how often one, were asked for."""

    def reader(self, *args: Any) -> Any:
        made = super().reader(*args)
        self.all, self.one = [0], [0]
        everything, single = made.snapshot_state, made.snapshot_split
        made.snapshot_state = lambda number: (self._count(self.all), everything(number))[1]  # type: ignore[method-assign]
        made.snapshot_split = lambda split_id: (self._count(self.one), single(split_id))[1]  # type: ignore[method-assign]
        return made

    def _count(self, counter: list[int]) -> None:
        counter[0] += 1


def test_a_split_is_left_at_its_stop_whatever_the_reader_would_read_on() -> None:
    half = Counting(Shelf(lengths={"a": 900, "b": 900}), honours_stops=False)
    part = share(a=0, b=7)
    stops = {(SHELF, "a"): 250, (SHELF, "b"): 8}
    with Reading(half, Query(client_id="c", read=None), {"tapes": {}}, part, stops) as made:
        record = fetch(made, part.limits)

    assert record.ends == {(SHELF, "a"): 250, (SHELF, "b"): 8}
    assert record.records == 251
    assert record.finished == frozenset(), "a stop that was set here is no end of a split"
    assert half.one == [251]
    assert half.all[0] < 251, (
        "all splits are asked for between two fetches alone: with each record it would take long"
    )


class Gushing(TapeHalf):
    """Its reader emits three records in a poll, and says of no split that it comes from there."""

    def reader(self, *args: Any) -> Any:
        made = super().reader(*args)
        one = made.poll_next

        def several(output: Any) -> Any:
            plain = NoSplits(output)
            return [one(plain) for _ in range(3)][-1]

        made.poll_next = several  # type: ignore[method-assign]
        return made


@dataclass
class NoSplits:
    """Passes records on without their splits."""

    output: Any

    def create_output_for_split(self, split_id: Any) -> Any:
        return self.output

    def release_output_for_split(self, split_id: Any) -> None:
        """There is none."""


def test_a_reader_that_emits_several_records_in_a_poll_goes_past_its_stop_by_the_rest_of_one() -> (
    None
):
    part = share(a=0)
    half = Gushing(Shelf(lengths={"a": 900}), honours_stops=False)
    with Reading(
        half, Query(client_id="c", read=None), {"tapes": {}}, part, {(SHELF, "a"): 100}
    ) as made:
        record = fetch(made, part.limits)

    assert record.records == record.ends[SHELF, "a"]
    assert 100 <= record.records < 103


def test_time_is_a_limit_too() -> None:
    part = share(FetchLimits(max_millis=1, wait_millis=3_600_000), a=0)
    with reading(Shelf(lengths={"a": 0}), part) as made:
        assert fetch(made, part.limits).records == 0


@pytest.mark.timeout(60)
def test_a_reader_that_knows_its_tip_waits_for_nothing_more() -> None:
    """Or a micro-batch would last as long as records keep coming.

    Here nothing but the tip ends it.
    """
    part = share(FetchLimits(wait_millis=3_600_000), a=0, b=0)
    with reading(Shelf(lengths={"a": 7, "b": 0}, timed={"a", "b"}), part) as made:
        record = fetch(made, part.limits)

    assert (record.records, record.has_more) == (7, False)


def test_the_tip_of_one_split_is_not_that_of_all() -> None:
    part = share(FetchLimits(wait_millis=200), a=0, b=0)
    with reading(Shelf(lengths={"a": 1, "b": 9}, timed={"a"}), part) as made:
        record = fetch(made, part.limits)

    assert record.records == 10


def test_a_task_names_itself_and_its_limits() -> None:
    context = TaskContext(share(a=0))
    context.send_split_request()

    assert (context.subtask_id, context.current_parallelism()) == (3, 5)
    assert context.location
    with pytest.raises(ContractViolationError, match="cannot send event hello"):
        context.send_source_event_to_coordinator(SourceEvent(name="hello", payload=None))


def test_a_task_without_splits_reads_and_seals_nothing(tmp_path: Path) -> None:
    query = Query(client_id="c", read=None, journal=FolderJournal(tmp_path / "j"))
    reader = JournalTaskReader(TapeHalf(Shelf()), query, "tapes")

    for part in (None, share()):
        assert list(reader.read(ReaderPartition(subtask_id=3, ranges=(), share=part))) == []
    assert not (tmp_path / "j").exists()


def sealed(tmp_path: Path, half: TapeHalf) -> Callable[[], list[Any]]:
    """A task whose range is sealed: call it for another attempt."""
    journal = FolderJournal(tmp_path / "j")
    journal.create("j")
    part = ReaderPartition(subtask_id=3, ranges=(), settings={"tapes": {}}, share=share(a=2, b=0))

    def attempt() -> list[Any]:
        reader = JournalTaskReader(half, Query(client_id="c", read=None, journal=journal), "tapes")
        return [tuple(row.values()) for batch in reader.read(part) for row in batch.to_pylist()]

    assert len(attempt()) == 5 + 4
    return attempt


def test_a_sealed_range_that_is_gone_fails_the_task(tmp_path: Path) -> None:
    shelf = Shelf(lengths={"a": 7, "b": 4})
    attempt = sealed(tmp_path, TapeHalf(shelf))
    shelf.begins["a"] = 4

    with pytest.raises(
        JournalError,
        match="has 9 records, and 7 when it is read again: the source does not have them",
    ):
        attempt()


@pytest.mark.parametrize(("begin", "left"), [(4, 7), (7, 4), (50, 4)])
@pytest.mark.parametrize("how", ["skips", "is_queue"])
def test_a_sealed_range_that_is_gone_is_skipped_in_words_if_the_user_or_connector_says_so(
    tmp_path: Path, how: str, begin: int, left: int
) -> None:
    """Also if all of the split is gone, and more than the range."""
    shelf = Shelf(lengths={"a": 7, "b": 4})
    attempt = sealed(tmp_path, TapeHalf(shelf, **{how: True}))  # type: ignore[arg-type]
    shelf.begins["a"] = begin

    with capture_logs() as logs:
        assert len(attempt()) == left
        assert len(attempt()) == left, "and again"
    (first, _) = [line["event"] for line in logs]
    assert f"{9 - left} of 9 records" in first
    assert "shelf/a: 2 to 7" in first
    assert "shelf/b: 0 to 4" in first


@pytest.mark.parametrize("skips", [False, True])
def test_a_sealed_range_that_has_more_records_is_never_delivered(
    tmp_path: Path, *, skips: bool
) -> None:
    """The connector is wrong then: what was sealed cannot be told from what was not."""
    half = TapeHalf(Shelf(lengths={"a": 7, "b": 4}), skips=skips)
    attempt = sealed(tmp_path, half)
    half.repeats = 2

    with pytest.raises(ContractViolationError, match="has 9 records, and 18 when it is read again"):
        attempt()


def test_planning_does_not_wait_for_a_store_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks once, says so, and takes the answer when it comes."""
    journal, problems, asked = FolderJournal(tmp_path), [], []
    journal.create("j")
    free = False

    def hangs(_: FolderJournal, name: str) -> int:
        asked.append(name)
        while not free:
            time.sleep(0.001)
        return 7

    monkeypatch.setattr(FolderJournal, "newest", hangs)
    folding = Folding(journal, min_batches=1, tell=problems.append, patience=0.01)
    assert [folding.find("j"), folding.find("j")] == [None, None]
    assert problems[-1] is not None
    assert "has not answered" in problems[-1].message
    free = True
    while (found := folding.find("j")) is None:
        pass

    assert (found, asked, problems[-1]) == (7, ["j"], None)
    folding.stop()


def test_a_batch_query_deletes_journals_of_batch_queries_that_are_a_week_old(
    tmp_path: Path,
) -> None:
    """It cannot say when it has ended.

    Journals of streams belong to their checkpoints, and stay.
    """
    journal = FolderJournal(tmp_path)
    stream, batch = (
        JournalOptions(store=journal, limits=NO_LIMIT, is_batch=b).new_name for b in (False, True)
    )
    old_stream, old_batch, young_batch, new_batch = stream(), batch(), batch(), batch()
    for name, age in (
        (old_stream, 2 * BATCH_LIFE),
        (old_batch, BATCH_LIFE + 60),
        (young_batch, BATCH_LIFE - 60),
    ):
        journal.create(name)
        os.utime(tmp_path / name / "JOURNAL", (time.time() - age,) * 2)

    folding = Folding(journal, min_batches=1, tell=lambda _: None)
    assert folding.create(stream())
    journal.check(old_batch)
    assert folding.create(new_batch)
    folding.stop()

    for name in (old_stream, young_batch, new_batch):
        journal.check(name)
    with pytest.raises(ForeignJournalError):
        journal.check(old_batch)


def test_a_store_that_cannot_be_written_to_fails_the_task(tmp_path: Path) -> None:
    query = Query(client_id="c", read=None, journal=FolderJournal(tmp_path / "missing"))
    reader = JournalTaskReader(TapeHalf(Shelf(lengths={"a": 3})), query, "tapes")

    part = ReaderPartition(subtask_id=3, ranges=(), settings={"tapes": {}}, share=share(a=0))
    with pytest.raises(JournalError, match="Mount it in all pods"):
        list(reader.read(part))


class Silent(TapeHalf):
    """Brings nothing, and says at each poll what the test wants."""

    status: InputStatus

    def reader(self, *args: Any) -> Any:
        made = super().reader(*args)
        made.poll_next = lambda _: self.status  # type: ignore[method-assign]
        return made


@pytest.mark.parametrize(
    ("status", "waits", "sleeps"),
    [
        (InputStatus.NOTHING_AVAILABLE, 4, 0),
        (InputStatus.MORE_AVAILABLE, 0, 2),
        (InputStatus.END_OF_INPUT, 0, 0),
    ],
)
def test_a_poll_without_a_record_waits_for_the_reader_or_gives_it_two_more_turns(
    status: InputStatus, waits: int, sleeps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One poll brings nothing between two fetches, and one at an empty fetch."""
    waited: list[float] = []
    slept: list[float] = []
    monkeypatch.setattr(TaskContext, "wait", lambda _, seconds: waited.append(seconds))
    monkeypatch.setattr(reading_module, "time", SimpleNamespace(sleep=slept.append))
    half = Silent(Shelf(lengths={"a": 0}))
    half.status = status

    with Reading(half, Query(client_id="c", read=None), {"tapes": {}}, share(a=0), {}) as made:
        idle = [made.poll() or made.is_idle for _ in range(4)]

    assert idle == [False, False, True, True]
    assert (len(waited), len(slept)) == (waits, sleeps)
