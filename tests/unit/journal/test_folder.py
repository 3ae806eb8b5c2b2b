"""A journal in a folder: created once, whoever tries, and never half."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from balanced_source.documents.journal import JournalRecord, RecordKey
from balanced_source.errors import (
    CorruptDocumentError,
    ForeignJournalError,
    InvalidSpecError,
    JournalError,
)
from balanced_source.host.journal import Attempt, SealResult, run
from balanced_source_adapters.journal_folder import FolderJournal

S = ("server", "log")
KEY = RecordKey("j", 7, 2)
RECORD = JournalRecord(key=KEY, starts={S: 3}, ends={S: 9}, finished=frozenset({S}), has_more=True)


@pytest.fixture
def journal(tmp_path: Path) -> FolderJournal:
    made = FolderJournal(tmp_path)
    made.create("j")
    return made


def test_what_is_sealed_is_read_by_everybody(journal: FolderJournal, tmp_path: Path) -> None:
    assert FolderJournal(tmp_path).read(KEY) is None
    assert FolderJournal(tmp_path).seal(RECORD) is SealResult.SEALED
    assert FolderJournal(tmp_path).read(KEY) == RECORD
    assert journal.newest("j") == 7


def test_of_many_attempts_one_wins_and_its_record_stays(journal: FolderJournal) -> None:
    records = [replace(RECORD, ends={S: end}) for end in range(3, 35)]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(journal.seal, records))

    winners = [made for made, result in zip(records, results, strict=True) if result is SealResult.SEALED]
    assert [journal.read(KEY)] == winners
    assert set(results) == {SealResult.SEALED, SealResult.TAKEN}
    left = sorted(path.name for path in (journal.folder / "j").iterdir())
    assert left == ["7-2.json", "JOURNAL"], "nothing else is left"


def test_a_journal_is_made_once_and_keeps_its_records(journal: FolderJournal) -> None:
    journal.seal(RECORD)
    journal.create("j")

    assert journal.read(KEY) == RECORD


def test_a_folder_without_hard_links_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", os.replace)
    with pytest.raises(JournalError, match=r"with hard links|cannot be used"):
        FolderJournal(tmp_path).create("j")


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match=r"file cannot be used.*Check the folder"):
        FolderJournal(tmp_path / "file").create("j")


def test_a_lost_answer_is_unknown_and_never_success(journal: FolderJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(_source: object, _target: object) -> None:
        raise OSError("stale file handle")

    monkeypatch.setattr(os, "link", link)
    assert journal.seal(RECORD) is SealResult.UNKNOWN


def test_a_store_that_loses_every_answer_fails_the_task(
    journal: FolderJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And does not keep it for ever."""
    monkeypatch.setattr(FolderJournal, "seal", lambda *_: SealResult.UNKNOWN)

    with pytest.raises(JournalError, match="micro-batch 7 of reader 2, and does not have it afterwards"):
        run(Attempt(key=KEY), journal, lambda _: RECORD)


def test_an_executor_without_the_driver_s_folder_fails(tmp_path: Path, journal: FolderJournal) -> None:
    """It would seal what nobody reads, and emit it, or take a record that it cannot see for none."""
    elsewhere = FolderJournal(tmp_path / "not-mounted")

    with pytest.raises(JournalError, match="a folder that the driver and all executors share"):
        elsewhere.read(KEY)
    with pytest.raises(JournalError, match="cannot be used"):
        elsewhere.seal(RECORD)
    assert not (tmp_path / "not-mounted").exists()
    with pytest.raises(ForeignJournalError, match=r"belongs to journal j, which is not in .*not-mounted"):
        elsewhere.check("j")
    journal.check("j")


def test_records_of_another_place_are_refused(journal: FolderJournal) -> None:
    journal.seal(RECORD)
    (journal.folder / "j" / "7-2.json").rename(journal.folder / "j" / "8-2.json")

    with pytest.raises(CorruptDocumentError, match=r"the record of \('j', 7, 2\) lies where \('j', 8, 2\) belongs"):
        journal.read(KEY._replace(number=8))
    with pytest.raises(InvalidSpecError, match="journal"):
        journal.read(KEY._replace(journal="../j"))


def test_old_records_are_deleted(journal: FolderJournal) -> None:
    for number in (9, 10, 11):
        journal.seal(JournalRecord(key=RecordKey("j", number, 0)))

    journal.delete_below("j", 10)

    kept = [number for number in (9, 10, 11) if journal.read(RecordKey("j", number, 0)) is not None]
    assert kept == [10, 11]
