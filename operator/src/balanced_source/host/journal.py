"""Reading with a journal: sealed before emitted.

Pure; tests explore every interleaving of this code.

A task fetches into a buffer, seals what it has fetched, and only then emits. `seal` creates a
record if there is none, so of all attempts at a task one wins, and the others emit what the winner
sealed. When a micro-batch is over, the planner seals an empty record for each reader without one,
then folds the records into the next starts. After that a late attempt can only lose: what was
folded once never changes.
"""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol, Self, TypeAlias, assert_never

from balanced_source.api import Position, SplitId
from balanced_source.documents.journal import JournalRecord, RecordKey
from balanced_source.errors import ContractViolationError, JournalError
from balanced_source.names import split_name

MAX_STEPS: Final = 16
"""Steps of one attempt: a store that loses every answer must not keep a task forever."""


class SealResult(enum.Enum):
    """What became of an attempt to create a record.

    SEALED: there was none, and now there is this one.
    TAKEN: there was one already.
    UNKNOWN: the answer was lost; the record may have been created.
    """

    SEALED = "Sealed"
    TAKEN = "Taken"
    UNKNOWN = "Unknown"


class Journal(Protocol):
    """Where records are kept. An implementation must create them atomically, or not at all."""

    def read(self, key: RecordKey) -> JournalRecord | None:
        """Return a record; None if there is none.

        Raises:
            JournalError: the store cannot be reached.
        """
        ...

    def seal(self, record: JournalRecord) -> SealResult:
        """Create a record if its key has none.

        Raises:
            JournalError: it was not created, and there may be none: the store cannot be written to.
        """
        ...

    def delete_below(self, journal: str, number: int) -> None:
        """Delete records of micro-batches that Spark does not retain any more."""
        ...


class JournalStore(Journal, Protocol):
    """A `Journal` with what the driver needs of it. Tasks unpickle it."""

    @property
    def location(self) -> str:
        """Where the journals are, for messages."""
        ...

    def create(self, journal: str) -> None:
        """Make a journal, after a proof that the store can hold one. More than once is harmless.

        Raises:
            JournalError: the store cannot be written to, or cannot create a record only if there is
                none.
        """
        ...

    def check(self, journal: str) -> None:
        """Check that a journal is here.

        Raises:
            ForeignJournalError: it is not.
            JournalError: that cannot be found out now.
        """
        ...

    def newest(self, journal: str) -> int:
        """Return the largest number of a micro-batch that has a record; 0 if none has.

        Raises:
            JournalError: the store cannot be reached.
        """
        ...

    def delete_made_before(self, prefix: str, time: float) -> None:
        """Delete journals whose names begin with a prefix, and which were made before a time.

        What cannot be deleted is left. A task that still runs with a deleted journal fails: it does
        not find it.

        Args:
            prefix: of the names.
            time: in seconds since the epoch.
        """
        ...

    def newest_offsets(self) -> str | None:
        """Return the newest entry of the offset log, if the journals lie in the Spark checkpoint.

        Else None.
        """
        ...

    def logged_batches(self) -> int:
        """Return how many entries the offset log has, if the journals lie in the Spark checkpoint.

        Else 0.

        Raises:
            JournalError: the store cannot be reached.
        """
        ...


@dataclass(frozen=True, slots=True)
class LookUp:
    """Read the record of the task."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """Fetch from the starts, up to the limits, into a buffer."""


@dataclass(frozen=True, slots=True)
class Seal:
    """Create the record."""

    record: JournalRecord


@dataclass(frozen=True, slots=True)
class Emit:
    """Emit exactly what a record says.

    Attributes:
        record: what to emit.
        is_buffered: whether the buffer holds it; else it is read again, from `starts` to `ends`.
    """

    record: JournalRecord
    is_buffered: bool


Step: TypeAlias = LookUp | Fetch | Seal | Emit


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt at the task of a reader: tells the next step, and is told its outcome.

    Attributes:
        key: of the task's record.
        step: what to do next; after an `Emit` the attempt is over.
        own: what is in the buffer.
    """

    key: RecordKey
    step: Step = LookUp()
    own: JournalRecord | None = None

    def looked(self, found: JournalRecord | None) -> Self:
        """The record was read."""
        # Another attempt may have won, or this one did and its answer was lost. In both cases only
        # what is sealed may be emitted.
        if found is not None:
            return replace(self, step=Emit(found, is_buffered=found == self.own))
        # The buffer is kept: after a lost answer the same record is sealed, not another one.
        return replace(self, step=Fetch() if self.own is None else Seal(self.own))

    def fetched(self, record: JournalRecord) -> Self:
        """The buffer holds what `record` says; also if that is nothing."""
        if record.key != self.key:
            raise ContractViolationError(f"the record of {record.key} was fetched for {self.key}")
        return replace(self, own=record, step=Seal(record))

    def sealed(self, result: SealResult) -> Self:
        """The record was created or not. Only a record that was read or created may be emitted."""
        match result:
            case SealResult.SEALED if self.own is not None:
                return replace(self, step=Emit(self.own, is_buffered=True))
            # The record that is there now decides what is emitted, whoever created it.
            case SealResult.SEALED | SealResult.TAKEN | SealResult.UNKNOWN:
                return replace(self, step=LookUp())
            case _:
                assert_never(result)


def run(attempt: Attempt, journal: Journal, fetch: "Fetcher") -> Emit:
    """Take the steps of an attempt until there is something to emit.

    Raises:
        JournalError: the store cannot be reached. The task fails, and Spark runs it again.
    """
    for _ in range(MAX_STEPS):
        match attempt.step:
            case LookUp():
                attempt = attempt.looked(journal.read(attempt.key))
            case Fetch():
                attempt = attempt.fetched(fetch(attempt.key))
            case Seal(record):
                attempt = attempt.sealed(journal.seal(record))
            case Emit() as emit:
                return emit
            case _:
                assert_never(attempt.step)
    # Failing is safe: nothing was emitted, and Spark runs the task again.
    raise JournalError(
        f"the journal takes the record of micro-batch {attempt.key.number} of reader "
        f"{attempt.key.reader}, and does not have it afterwards: check the store of journalLocation"
    )


class Fetcher(Protocol):
    """Fetches into the buffer of a task."""

    def __call__(self, key: RecordKey) -> JournalRecord:
        """Return what the buffer holds now."""
        ...


def close(
    journal: Journal, name: str, number: int, readers: Iterable[int]
) -> list[JournalRecord] | None:
    """Return the final records of a micro-batch that is over, one per reader.

    Readers without a record get an empty one: an action that skipped their task has delivered
    nothing of theirs.

    Returns:
        The records; None if that of a reader is not known yet because an answer was lost. Ask
        again.

    Raises:
        JournalError: the store cannot be reached.
    """
    final = []
    # Every reader gets a record, so that a late attempt finds its key taken and can only lose.
    for reader in readers:
        key = RecordKey(name, number, reader)
        found = journal.read(key)
        if found is None:
            # Not the result but the record counts: a late attempt may have been first.
            journal.seal(JournalRecord(key=key))
            found = journal.read(key)
        # An answer was lost. Going on without the record would drop what a task may have emitted.
        if found is None:
            return None
        final.append(found)
    return final


def folded(
    starts: Mapping[SplitId, Position], records: Iterable[JournalRecord]
) -> dict[SplitId, Position]:
    """Return the starts of the next micro-batch.

    Raises:
        ContractViolationError: a record does not begin at the start of a split, or two have read
            the same split.
    """
    after: dict[SplitId, Position] = {}
    for record in records:
        for split_id, end in record.ends.items():
            # Two readers of a split, or a gap before it, mean that records were delivered twice or
            # lost.
            if split_id in after or record.starts.get(split_id) != starts.get(split_id):
                raise ContractViolationError(
                    f"micro-batch {record.key.number} of reader {record.key.reader} does not"
                    f" continue split {split_name(split_id)} at {starts.get(split_id)!r}: was the"
                    " journal of another query used?"
                )
            after[split_id] = end
    return {**starts, **after}
