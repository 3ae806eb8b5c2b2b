"""A state in a folder has one writer at a time."""

import fcntl
from pathlib import Path

import pytest

from balanced_source.errors import StateError
from balanced_source_adapters import folder
from balanced_source_adapters.folder import FolderStore, write_atomically


def test_no_other_process_writes_between_the_look_and_the_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, locked = tmp_path / "state.json", list[bool]()

    def written(where: Path, text: str) -> None:
        with where.with_name(f".{where.name}.lock").open("w") as other:
            with pytest.raises(BlockingIOError):
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked.append(True)
        write_atomically(where, text)

    monkeypatch.setattr(folder, "write_atomically", written)
    store = FolderStore(path)
    store.read()

    store.swap("new")

    assert locked == [True]
    with path.with_name(f".{path.name}.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)  # given back


def test_a_state_that_cannot_be_stored_names_its_file(tmp_path: Path) -> None:
    path = tmp_path / "file" / "state.json"
    path.parent.write_text("no folder")
    with pytest.raises(StateError, match=r"state\.json"):
        FolderStore(path).swap("new")
