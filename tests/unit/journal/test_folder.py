"""A journal in a folder: created once, whoever tries, and never half."""

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from balanced_source.documents.journal import JournalRecord, RecordKey
from balanced_source.errors import (
    ForeignJournalError,
    JournalError,
)
from balanced_source.host.journal import SealResult
from balanced_source_spark.journal_stores.folder import FolderJournal

S = ("server", "log")
KEY = RecordKey("j", 7, 2)
RECORD = JournalRecord(key=KEY, starts={S: 3}, ends={S: 9}, finished=frozenset({S}), has_more=True)


@pytest.fixture
def journal(tmp_path: Path) -> FolderJournal:
    made = FolderJournal(tmp_path)
    made.create("j")
    return made


def test_a_folder_without_hard_links_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", os.replace)
    with pytest.raises(JournalError, match=r"with hard links|cannot be used"):
        FolderJournal(tmp_path).create("j")


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match=r"file cannot be used.*Check the folder"):
        FolderJournal(tmp_path / "file").create("j")


def test_a_lost_answer_is_unknown_and_never_success(
    journal: FolderJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(_source: object, _target: object) -> None:
        raise OSError("stale file handle")

    monkeypatch.setattr(os, "link", link)
    assert journal.seal(RECORD) is SealResult.UNKNOWN


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.EACCES, "Grant the user of driver and executors the right to read, write and list"),
        (errno.EPERM, "Grant the user of driver and executors the right to read, write and list"),
        (errno.EROFS, "Mount it such that driver and executors can write to it"),
        (errno.EDQUOT, "Make room on its file system, or raise the quota"),
        (errno.ENOENT, "Check the folder and its rights"),
    ],
)
def test_a_refusal_of_the_file_system_is_told_and_not_taken_for_a_lost_answer(
    journal: FolderJournal, monkeypatch: pytest.MonkeyPatch, code: int, remedy: str
) -> None:
    """An unknown outcome is looked up and tried again, in silence."""

    def link(_source: object, _target: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(JournalError, match=f"cannot be used: .*{os.strerror(code)}. {remedy}"):
        journal.seal(RECORD)


def test_a_record_is_durable_before_anything_acts_on_it(
    journal: FolderJournal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that loses power forgets names that were not written to the disk.

    Rows may have left it already.
    """
    durable: list[set[str]] = []

    def fsync(number: int) -> None:
        if stat.S_ISDIR(os.fstat(number).st_mode):
            durable.append({path.name for path in tmp_path.rglob("*") if path.is_file()})

    monkeypatch.setattr(os, "fsync", fsync)
    assert journal.seal(RECORD) is SealResult.SEALED
    (name,) = {name for name in durable[-1] if name.startswith("7")}
    durable.clear()
    assert journal.seal(RECORD) is SealResult.TAKEN
    assert journal.read(KEY) == RECORD, "sealed by a task that died before its name was durable"
    assert [name in names for names in durable] == [True]


def test_the_content_of_a_record_is_durable_before_its_name(
    journal: FolderJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that survives a loss of power without its content would be half a record."""
    durable: set[tuple[int, int]] = set()
    were_durable: list[bool] = []
    link = os.link

    def state(found: os.stat_result) -> tuple[int, int]:
        return found.st_ino, found.st_size

    def linked(source: Path, target: Path) -> None:
        were_durable.append(state(source.stat()) in durable)
        link(source, target)

    monkeypatch.setattr(os, "fsync", lambda number: durable.add(state(os.fstat(number))))
    monkeypatch.setattr(os, "link", linked)
    assert journal.seal(RECORD) is SealResult.SEALED
    assert were_durable == [True]


def test_a_name_that_cannot_be_made_durable_is_a_failure(
    journal: FolderJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(number: int) -> None:
        if stat.S_ISDIR(os.fstat(number).st_mode):
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fsync)
    code = errno.EINVAL  # file systems that have nothing to do for it
    assert journal.seal(RECORD) is SealResult.SEALED
    code = errno.EIO
    assert journal.seal(replace(RECORD, key=RecordKey("j", 8, 2))) is SealResult.UNKNOWN
    with pytest.raises(JournalError, match="cannot be used"):
        journal.read(KEY)


def test_an_executor_without_the_driver_s_folder_fails(
    tmp_path: Path, journal: FolderJournal
) -> None:
    """It would seal and emit what no one reads, or take a record that it cannot see for none."""
    elsewhere = FolderJournal(tmp_path / "not-mounted")

    with pytest.raises(JournalError, match="a folder that the driver and all executors share"):
        elsewhere.read(KEY)
    with pytest.raises(JournalError, match="cannot be used"):
        elsewhere.seal(RECORD)
    assert not (tmp_path / "not-mounted").exists()
    with pytest.raises(
        ForeignJournalError, match=r"belongs to journal j, which is not in .*not-mounted"
    ):
        elsewhere.check("j")
    journal.check("j")


def test_what_a_killed_task_left_behind_is_deleted_with_the_records(
    journal: FolderJournal, tmp_path: Path
) -> None:
    """A task that dies within its seal leaves the temporary file."""
    left = [tmp_path / "j" / f".{number}-0.json.0f3a" for number in (3, 4)]
    for path in left:
        path.touch()

    journal.delete_below("j", 4)

    assert [path.exists() for path in left] == [False, True]


@pytest.mark.parametrize(
    "ask",
    [
        lambda journal: journal.check("j"),
        lambda journal: journal.newest("j"),
        lambda journal: journal.logged_batches(),
    ],
    ids=["check", "newest", "logged batches"],
)
def test_a_folder_that_does_not_answer_is_named(
    journal: FolderJournal, ask: Callable[[FolderJournal], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would look like a journal without records, or like that of another query."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    for name in ("exists", "iterdir", "glob"):
        monkeypatch.setattr(Path, name, refuse)

    with pytest.raises(JournalError, match=r"cannot be used: .*Input/output error"):
        ask(journal)
