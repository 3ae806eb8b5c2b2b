"""Finds the source that a folder of local mode belongs to."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from balanced_source.errors import InvalidSpecError
from balanced_source.names import shown
from balanced_source_adapters.folder import (
    assignment_path,
    fixed_path,
    read_text,
    source_path,
    state_path,
)
from balanced_source_operator.local_notes import read_run
from balanced_source_operator.views import gather
from balanced_source_operator.views.model import SourceView


def stored_view(folder: Path, *, name: str) -> SourceView:
    """Return a source with the problems that local mode has left in its folder.

    Says so if nothing serves the folder any more: the rest of the view is then of the last run.
    """
    view, run = gather.of_folder(folder, name=name), read_run(folder)
    notes = view.notes
    if run.is_active is False:
        how = f", which {run.ending}" if run.ending else ""
        notes = (*notes, f"no run is active: this is the state of the last one{how}")
    return replace(view, problems=run.problems, notes=notes)


def name_of(folder: Path, name: str = "") -> str:
    """Return the name of the source whose documents are in a folder.

    Args:
        folder: of local mode.
        name: that the user gives; empty if none.

    Raises:
        InvalidSpecError: there are no documents in the folder, or they belong to another source.
    """
    if not _has_documents(folder):
        raise InvalidSpecError(_advice(folder), field=f"--dir {folder}")
    stored = _stored_name(folder)
    if name and stored and name != stored:
        raise InvalidSpecError(
            f"the folder belongs to source {shown(stored)}, not {shown(name)}. Name the folder of"
            f" {shown(name)}, or leave out the name",
            field=f"--dir {folder}",
        )
    return stored or name or folder.absolute().name


def _advice(folder: Path) -> str:
    if not folder.is_dir():
        return "there is no such folder. balanced-source run uses .balanced-source/NAME"
    if below := ", ".join(sorted(map(str, _below(folder)))):
        return f"the folder holds no documents of a source. Name the folder of one source: {below}"
    return (
        "the folder holds no documents of a source. Name the folder that balanced-source run or"
        " local uses; that of run is .balanced-source/NAME"
    )


def _below(folder: Path) -> Iterator[Path]:
    for parent in (folder, folder / ".balanced-source"):
        if parent.is_dir():
            yield from (child for child in parent.iterdir() if _has_documents(child))


def _has_documents(folder: Path) -> bool:
    paths = (source_path, fixed_path, state_path, assignment_path)
    return any(path(folder).is_file() for path in paths)


def _stored_name(folder: Path) -> str:
    """Return the name that local mode has stored; empty if there is none, or it is damaged."""
    try:
        match json.loads(read_text(source_path(folder)) or "{}"):
            case {"name": str(name)}:
                return name
            case _:
                return ""
    except ValueError:
        return ""
