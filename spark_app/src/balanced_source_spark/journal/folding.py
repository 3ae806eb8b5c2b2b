"""Asks the journal in a thread of its own: planning must not wait for a store that hangs."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final, TypeVar

from balanced_source.api import Problem
from balanced_source.documents.journal import JournalRecord
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import JournalError
from balanced_source.host.journal import JournalStore, close
from balanced_source.host.journaling import readers_of
from balanced_source.reasons import Reason
from balanced_source_spark.journal_options import BATCH, BATCH_LIFE

T = TypeVar("T")

PATIENCE: Final = 2.0
"""Seconds that planning waits for an answer."""

DELETE_EVERY: Final = 10
"""Micro-batches between two deletions of old records."""


class Folding:
    """The driver's side of a journal. Used by one thread.

    Args:
        journal: the store.
        min_batches: micro-batches whose records are kept; more if the offset log has more.
        tell: sets the problem, or clears it.
        patience: see `PATIENCE`.

    Attributes:
        complaint: why the last question had no answer.
    """

    def __init__(
        self,
        journal: JournalStore,
        *,
        min_batches: int,
        tell: Callable[[Problem | None], None],
        patience: float = PATIENCE,
    ) -> None:
        self._journal = journal
        self._min_batches = min_batches
        self._tell = tell
        self._patience = patience
        # One thread: a store that hangs holds a single one, however often planning asks.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="bsrc-journal")
        self._pending: tuple[object, Future[Any]] | None = None
        self.complaint = ""

    def create(self, name: str) -> bool:
        """Make a journal; returns whether that is done."""
        return self._ask(("create", name), lambda: self._created(name)) is not None

    def find(self, name: str) -> int | None:
        """Return the newest micro-batch with a record in a journal; None if it cannot be asked now.

        Raises:
            ForeignJournalError: the journal is not there.
        """
        return self._ask(("find", name), lambda: self._found(name))

    def close(self, end: StreamOffset) -> list[JournalRecord] | None:
        """Return the final records of a micro-batch that is over.

        None if they cannot be had now.
        """
        point = end.journal
        if point is None:
            return []
        key = ("close", point.journal, point.number)
        return self._ask(key, lambda: self._closed(end, point.journal, point.number))

    def stop(self) -> None:
        """End the thread, unless the store keeps it."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _created(self, name: str) -> bool:
        self._journal.create(name)
        if name.startswith(BATCH):
            # A batch query has no later micro-batch that could clean up after it.
            self._journal.delete_made_before(BATCH, time.time() - BATCH_LIFE)
        return True

    def _found(self, name: str) -> int:
        self._journal.check(name)
        return self._journal.newest(name)

    def _closed(self, end: StreamOffset, name: str, number: int) -> list[JournalRecord] | None:
        # Also of a micro-batch without anything to read: a missing record tells a journal that is
        # older.
        found = close(self._journal, name, number, readers_of(end) or [0])
        # To delete is to list the whole journal first, which an object store charges for.
        if number % DELETE_EVERY == 0:
            self._delete(name, number)
        return found

    def _delete(self, name: str, number: int) -> None:
        """Delete the records of micro-batches that Spark does not retain any more.

        What Spark retains is a setting of its session, which no process of a data source can see.
        The offset log has an entry for each micro-batch that is retained.
        """
        try:
            logged = self._journal.logged_batches()
        except JournalError:
            return  # next time: a record that is deleted too early is missing for good
        self._journal.delete_below(name, number - max(self._min_batches, logged))

    def _ask(self, key: object, question: Callable[[], T | None]) -> T | None:
        """Ask in the thread; the same question is not asked twice at the same time."""
        # A question that is still open is waited for again: Spark asks again after each refusal to
        # plan.
        if self._pending is None:
            self._pending = key, self._pool.submit(question)
        asked, future = self._pending
        wait([future], self._patience)
        if not future.done():
            self._complain(f"the journal has not answered for {self._patience:.0f} s")
            return None
        self._pending = None
        try:
            answer: T | None = future.result()
        except JournalError as error:
            self._complain(str(error))
            return None
        # The answer is to an older question, which no one waits for any more.
        if asked != key:
            return self._ask(key, question)
        if answer is None:
            self._complain("an answer of the journal was lost, and the question is asked again")
            return None
        self._tell(None)
        return answer

    def _complain(self, message: str) -> None:
        self.complaint = f"{message}. No micro-batch begins until the journal answers"
        self._tell(Problem(reason=Reason.JOURNAL_UNREACHABLE, message=self.complaint))
