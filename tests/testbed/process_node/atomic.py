"""Folders whose whole content changes at once, built as the kubelet builds them.

The files live in a folder with a time in its name; the link `..data` points there, and each visible
name is a link into `..data`. Turning that one link swaps all files together, also under the eyes of
a process that has the folder mounted.
"""

import itertools
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_DATA = "..data"
_counter = itertools.count()


@dataclass(frozen=True, slots=True)
class FileContent:
    """One file of a payload: its bytes and its permission bits."""

    data: bytes
    mode: int = 0o644


Payload = dict[str, FileContent]
"""Path below the folder, with `/`, and the file there."""


def write_payload(folder: Path, payload: Mapping[str, FileContent]) -> bool:
    """Make the folder hold exactly the payload; returns False if it did so already."""
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / _DATA
    old = folder / link.readlink() if link.is_symlink() else None
    if old and _read(old) == dict(payload):
        return False
    new = folder / f"..{time.strftime('%Y_%m_%d_%H_%M_%S')}.{next(_counter)}"
    for name, content in payload.items():
        _write(new, name, content)
    new.mkdir(exist_ok=True)  # an empty payload has written nothing
    _turn(link, new.name)
    _link_names(folder, payload)
    if old:
        shutil.rmtree(old, ignore_errors=True)
    return True


def _write(folder: Path, name: str, content: FileContent) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.data)
    path.chmod(content.mode)


def _turn(link: Path, target: str) -> None:
    """Point a link somewhere else in one step."""
    fresh = link.with_name(f"{link.name}_tmp")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.rename(link)


def _link_names(folder: Path, payload: Mapping[str, FileContent]) -> None:
    wanted = {name.partition("/")[0] for name in payload}
    for name in wanted:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"{_DATA}/{name}")
    for entry in folder.iterdir():
        if entry.is_symlink() and entry.name != _DATA and entry.name not in wanted:
            entry.unlink()


def _read(folder: Path) -> Payload:
    files = (Path(root) / name for root, _, names in os.walk(folder) for name in names)
    return {
        str(path.relative_to(folder)): FileContent(path.read_bytes(), path.stat().st_mode & 0o777)
        for path in files
    }
