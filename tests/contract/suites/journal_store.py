"""What every place for journals must do.

A record is created once, whoever tries, and never half.
"""

import pickle
import time
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from balanced_source.documents.journal import JournalRecord, RecordKey
from balanced_source.errors import (
    CorruptDocumentError,
    ForeignJournalError,
    InvalidSpecError,
    JournalError,
)
from balanced_source.host.journal import Attempt, JournalStore, SealResult, run

S = ("server", "log")
KEY = RecordKey("j", 7, 2)
RECORD = JournalRecord(key=KEY, starts={S: 3}, ends={S: 9}, finished=frozenset({S}), has_more=True)


class JournalStoreContract(ABC):
    """Subclasses say where the journals are."""

    @abstractmethod
    def names(self, journal: JournalStore) -> list[str]:
        """Names of all that lies in journal ``j``."""

    @abstractmethod
    def move(self, journal: JournalStore, name: str, to: str) -> None:
        """Rename what lies in journal ``j``."""

    @abstractmethod
    def log(self, journal: JournalStore, number: int, text: str) -> None:
        """Write an entry of the offset log of the checkpoint that the journals lie in."""

    @pytest.fixture
    def made(self, journal: JournalStore) -> JournalStore:
        journal.create("j")
        return journal

    def test_a_sealed_record_is_read_by_every_attempt(self, made: JournalStore) -> None:
        assert made.read(KEY) is None
        assert made.seal(RECORD) is SealResult.SEALED
        other = pickle.loads(pickle.dumps(made))  # noqa: S301 - as Spark does with a task
        assert other.read(KEY) == RECORD
        assert other.newest("j") == 7

    def test_one_of_many_attempts_wins_and_its_record_stays(self, made: JournalStore) -> None:
        records = [replace(RECORD, ends={S: end}) for end in range(3, 35)]

        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(made.seal, records))

        winners = [
            record
            for record, result in zip(records, results, strict=True)
            if result is SealResult.SEALED
        ]
        assert [made.read(KEY)] == winners
        assert set(results) == {SealResult.SEALED, SealResult.TAKEN}
        assert self.names(made) == ["7-2.json", "JOURNAL"], "nothing else is left"

    def test_a_journal_is_made_once_and_keeps_its_records(self, made: JournalStore) -> None:
        made.seal(RECORD)
        made.create("j")

        assert made.read(KEY) == RECORD
        assert made.newest("j") == 7

    def test_the_newest_micro_batch_is_the_one_with_the_largest_number(
        self, made: JournalStore
    ) -> None:
        """As a number, not as a text; in whatever order the store lists records."""
        for number in (9, 10, 8):
            made.seal(replace(RECORD, key=KEY._replace(number=number)))

        assert made.newest("j") == 10

    def test_a_new_journal_has_no_records(self, made: JournalStore) -> None:
        assert made.newest("j") == 0

    def test_a_missing_journal_is_named(self, made: JournalStore) -> None:
        """An executor that does not see the driver's place would seal what no one reads."""
        with pytest.raises(ForeignJournalError, match="belongs to journal other, which is not in"):
            made.check("other")
        with pytest.raises(JournalError, match="journal other is not in"):
            made.read(KEY._replace(journal="other"))
        made.check("j")

    def test_records_of_another_place_are_refused(self, made: JournalStore) -> None:
        made.seal(RECORD)
        self.move(made, "7-2.json", "8-2.json")

        with pytest.raises(
            CorruptDocumentError,
            match=r"the record of \('j', 7, 2\) lies where \('j', 8, 2\) belongs",
        ):
            made.read(KEY._replace(number=8))

    def test_a_name_that_leaves_the_place_is_refused(self, made: JournalStore) -> None:
        with pytest.raises(InvalidSpecError, match="journal"):
            made.read(KEY._replace(journal="../j"))
        with pytest.raises(InvalidSpecError, match="journal"):
            made.create("a/b")

    def test_old_records_are_deleted(self, made: JournalStore) -> None:
        for number in (9, 10, 11):
            made.seal(JournalRecord(key=RecordKey("j", number, 0)))

        made.delete_below("j", 10)

        assert self.names(made) == ["10-0.json", "11-0.json", "JOURNAL"]

    def test_old_journals_of_batch_queries_are_deleted(self, made: JournalStore) -> None:
        old = RecordKey("batch-1", 1, 0)
        made.create(old.journal)
        made.seal(JournalRecord(key=old))
        made.seal(RECORD)

        made.delete_made_before("batch-", time.time() - 60)
        made.check(old.journal)
        assert made.read(old) is not None

        made.delete_made_before("batch-", time.time() + 60)
        with pytest.raises(ForeignJournalError):
            made.check(old.journal)
        with pytest.raises(JournalError, match="journal batch-1 is not in"):
            made.read(old)
        assert made.read(KEY) == RECORD, "the journals of streams stay"

    def test_a_store_that_loses_every_answer_fails_the_task(
        self, made: JournalStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And does not keep it forever."""
        monkeypatch.setattr(type(made), "seal", lambda *_: SealResult.UNKNOWN)

        with pytest.raises(
            JournalError, match="micro-batch 7 of reader 2, and does not have it afterwards"
        ):
            run(Attempt(key=KEY), made, lambda _: RECORD)

    def test_the_newest_entry_of_the_offset_log_is_found(self, made: JournalStore) -> None:
        assert made.newest_offsets() is None
        for number in range(11):
            self.log(made, number, f"v1\nentry {number}")

        assert made.newest_offsets() == "v1\nentry 10"

    def test_entries_of_the_offset_log_are_counted(self, made: JournalStore) -> None:
        assert made.logged_batches() == 0
        for number in range(98, 109):
            self.log(made, number, "v1")

        assert made.logged_batches() == 11
