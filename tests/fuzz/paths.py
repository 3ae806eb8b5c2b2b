"""Patterns of paths, matched with the names that a store has."""

from collections.abc import Iterator
from typing import Any, Final

from hypothesis import strategies as st

from balanced_source.connectors.files import File, FilesSource, Format, base_of
from balanced_source_adapters.files.connector import listed
from balanced_source_adapters.files.file_store import EVERYTHING, FileStore, WantedFiles
from balanced_source_adapters.files.stores import selection
from fuzz.judge import Judge, SilentError
from fuzz.values import PATHS
from support.hostile import HOSTILE

PARTS: Final = (
    *("a", "b", "/", "*", "**", "**/", "?", "[a-b]", "[!a]", "[b-a]", "[", "]", "{a,b*}", "{", "}"),
    *("*a" * 12, "**/" * 12, "{a,aa,*}" * 12, "é", "\udcff", "%2F", "_", "."),
)

_parts = st.builds("".join, st.lists(st.sampled_from(PARTS), max_size=8))
patterns = (
    st.builds("/d/{}".format, _parts)
    | st.builds("s3://d/{}".format, _parts)
    | st.sampled_from((*PATHS, *HOSTILE))
)
names = st.builds(
    "{}/{}".format,
    st.sampled_from(("/d", "d", "/d/" + "d/" * 20)),
    st.text("ab/_.é", max_size=12) | st.sampled_from(("a" * 250, "a" * 40 + "b", "d/" * 100 + "y")),
)
cases: Final = st.tuples(
    st.lists(patterns, min_size=1, max_size=3), st.lists(names, max_size=5, unique=True)
)


class Names(FileStore):
    """A store with files of these names."""

    def __init__(self, names: list[str]) -> None:
        self._names = sorted(names)

    def walk(
        self, base: str, *, after: str = "", wanted: WantedFiles = EVERYTHING
    ) -> Iterator[File]:
        """Yields the files below folders that may have a file that is wanted."""
        for name in self._names:
            folders = [name[:at] for at in range(len(base) + 1, len(name)) if name[at] == "/"]
            is_below = name == base or name.startswith(base.rstrip("/") + "/")
            if is_below and name > after and all(map(wanted.enters, folders)):
                yield File(1, name, 1)

    def exists(self, base: str) -> bool:
        """Always: a missing folder is not what is tried here."""
        return bool(base)

    def stat(self, path: str) -> File | None:
        """Is not asked."""
        raise NotImplementedError(path)

    def open(self, path: str) -> Any:
        """Is not asked."""
        raise NotImplementedError(path)


def check(case: Any, judge: Judge) -> None:
    """Lists what the patterns select, which is what `selection` says of each file below them."""
    paths, names = case
    call = FilesSource(paths=tuple(paths), kind_of_file=Format.TEXT).list_page(1, None)
    found = judge.try_(lambda: [file.path for file in listed(call, Names(names))], case)
    if found is None:
        return
    is_selected = selection(paths)
    if missing := [name for name in names if is_selected(name) and name not in found]:
        raise SilentError(f"{missing} are selected by {paths} and not listed")
    if wrong := [name for name in found if not is_selected(name)]:
        raise SilentError(f"{wrong} are listed and not selected by {paths}")
    assert all(map(base_of, paths))
