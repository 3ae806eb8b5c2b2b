"""A journal in a folder: created once, whoever tries, and never half."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from balanced_source.documents.journal import JournalRecord, RecordKey
from balanced_source.errors import CorruptDocumentError, InvalidSpecError, JournalError
from balanced_source.host.journal import SealResult
from balanced_source_adapters.journal_folder import FolderJournal

S = ("server", "log")
KEY = RecordKey("j", 7, 2)
RECORD = JournalRecord(key=KEY, starts={S: 3}, ends={S: 9}, finished=frozenset({S}), has_more=True)


def test_what_is_sealed_is_read_by_everybody(tmp_path: Path) -> None:
    assert FolderJournal(tmp_path, source="u").read(KEY) is None
    assert FolderJournal(tmp_path, source="u").seal(RECORD) is SealResult.SEALED
    assert FolderJournal(tmp_path, source="u").read(KEY) == RECORD


def test_of_many_attempts_one_wins_and_its_record_stays(tmp_path: Path) -> None:
    journal = FolderJournal(tmp_path, source="u")
    records = [replace(RECORD, ends={S: end}) for end in range(3, 35)]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(journal.seal, records))

    winners = [made for made, result in zip(records, results, strict=True) if result is SealResult.SEALED]
    assert [journal.read(KEY)] == winners
    assert set(results) == {SealResult.SEALED, SealResult.TAKEN}
    assert [path.name for path in (tmp_path / "j").iterdir()] == ["7-2.json"], "nothing else is left"


def test_a_folder_without_hard_links_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", os.replace)
    with pytest.raises(JournalError, match="use a folder on a file system with hard links"):
        FolderJournal(tmp_path, source="u")


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match=r"file cannot be used.*Check the folder"):
        FolderJournal(tmp_path / "file", source="u")


def test_a_lost_answer_is_unknown_and_never_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = FolderJournal(tmp_path, source="u")

    def link(_source: object, _target: object) -> None:
        raise OSError("stale file handle")

    monkeypatch.setattr(os, "link", link)
    assert journal.seal(RECORD) is SealResult.UNKNOWN


def test_records_of_another_source_or_place_are_refused(tmp_path: Path) -> None:
    journal = FolderJournal(tmp_path, source="u")
    journal.seal(RECORD)
    (tmp_path / "j" / "7-2.json").rename(tmp_path / "j" / "8-2.json")

    with pytest.raises(CorruptDocumentError, match="belongs to source u"):
        FolderJournal(tmp_path, source="v").read(KEY._replace(number=8))
    with pytest.raises(CorruptDocumentError, match=r"the record of \('j', 7, 2\) lies where \('j', 8, 2\) belongs"):
        journal.read(KEY._replace(number=8))
    with pytest.raises(InvalidSpecError, match="journal"):
        journal.read(KEY._replace(journal="../j"))


def test_old_records_are_deleted(tmp_path: Path) -> None:
    journal = FolderJournal(tmp_path, source="u")
    for number in (9, 10, 11):
        journal.seal(JournalRecord(key=RecordKey("j", number, 0)))

    journal.delete_below("j", 10)

    kept = [number for number in (9, 10, 11) if journal.read(RecordKey("j", number, 0)) is not None]
    assert kept == [10, 11]
