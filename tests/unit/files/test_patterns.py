"""Patterns of paths, blocks of files, and which files a listing finds."""

import os
from pathlib import Path
from typing import Any

import pytest

from balanced_source.connectors.files import (
    File,
    FilesSource,
    Format,
    base_of,
    blocks,
    compiled,
    is_splittable,
    is_visible,
    may_hold,
    start_of,
)
from balanced_source.errors import RefusedDiscoveryError
from balanced_source_adapters.files import stores
from balanced_source_adapters.files.connector import listed
from balanced_source_adapters.files.file_store import WantedFiles
from balanced_source_adapters.files.stores import LocalStore, inner


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("/a", "/a", True),
        ("/a", "/a/b/c", True),
        ("/a", "/ab", False),
        ("/a/*.txt", "/a/b.txt", True),
        ("/a/*.txt", "/a/b/c.txt", False),
        ("/a/**/*.txt", "/a/b/c/d.txt", True),
        ("/a/**/*.txt", "/a/d.txt", True),
        ("/a/20??-[01]?", "/a/2024-07", True),
        ("/a/20??-[!0]?", "/a/2024-07", False),
        ("/a[!b]c", "/adc", True),
        ("/a[!b]c", "/a/c", False),
        ("/a[bd]c", "/a/c", False),
        ("/a/{x,y*}/z", "/a/yes/z", True),
        ("/a.b", "/axb", False),
        ("/", "/x/y", True),
    ],
)
def test_patterns(pattern: str, path: str, expected: bool) -> None:
    assert compiled(pattern).matches(path) is expected


@pytest.mark.parametrize(
    ("pattern", "base"),
    [("/a/b*/c", "/a"), ("/a/b/", "/a/b"), ("/*", "/"), ("bucket/x{1,2}", "bucket")],
)
def test_listing_begins_at_the_part_without_wildcards(pattern: str, base: str) -> None:
    assert base_of(pattern) == base


@pytest.mark.parametrize(
    ("pattern", "start"),
    [("b/a-*/c", "b/a-"), ("b/x{1,2}", "b/x"), ("b/a/*.json", ""), ("b/a/**", ""), ("b/a", "")],
)
def test_the_first_letters_of_a_name_narrow_a_listing(pattern: str, start: str) -> None:
    assert start_of(pattern) == start


@pytest.mark.parametrize(
    ("pattern", "folder", "expected"),
    [
        ("/data/*.json", "/data/lost+found", False),
        ("/data/*.json", "/data/all.json", True),
        ("/data/*.json", "/data/all.json/deep", True),
        ("/data/2026-*/part?/x", "/data/2026-11", True),
        ("/data/2026-*/part?/x", "/data/2025-11", False),
        ("/data/2026-*/part?/x", "/data/2026-11/whole", False),
        ("/data/**/x", "/data/a/b", True),
        ("/data/{a/b,c}/x", "/data/a", True),
        ("/data", "/data/a/b", True),
        ("/data/", "/data/_temporary", False),
        ("/data/_logs", "/data/_logs/a", True),
        ("/", "/a", True),
    ],
)
def test_folders_that_are_listed(pattern: str, folder: str, *, expected: bool) -> None:
    assert may_hold(folder, pattern) is expected


def test_a_folder_that_no_pattern_names_need_not_be_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `lost+found` of a volume, and what a job keeps in a hidden folder."""
    for name in ("lost+found", "_work"):
        (tmp_path / name).mkdir()
    (tmp_path / "a.txt").write_text("x")
    scan = os.scandir

    def refuse(folder: str) -> Any:
        if not folder.endswith(tmp_path.name):
            raise PermissionError(13, "Permission denied")
        return scan(folder)

    monkeypatch.setattr(stores.os, "scandir", refuse)
    call = FilesSource(paths=(f"{tmp_path}/*.txt",), kind_of_file=Format.TEXT).list_page(1, None)

    assert [Path(file.path).name for file in listed(call, LocalStore())] == ["a.txt"]


@pytest.mark.parametrize(
    ("pattern", "below"), [("/a/b", False), ("/a/b/", False), ("/a/*", True), ("/a/b/c*", True)]
)
def test_a_pattern_with_wildcards_wants_what_is_below_a_folder(
    pattern: str, *, below: bool
) -> None:
    """An object that has the name of that folder is none of them."""
    assert WantedFiles.by(pattern).below is below


def test_hidden_files_are_not_read_unless_they_are_named() -> None:
    assert not is_visible("/a/_temporary/b", "/a")
    assert not is_visible("/a/.b.crc", "/a/*")
    assert not is_visible("_temporary/b", "*/b"), "of a store whose paths begin with a name"
    assert is_visible("/a/_logs/b", "/a/_logs")


@pytest.mark.parametrize("path", ["relative", "ftp://x/y", "wasb://bucket/key"])
def test_other_stores_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"relative|supported are"):
        inner(path)


def test_paths_of_stores() -> None:
    assert inner("file:///a%20b") == "/a b"
    assert inner("file:/a/b?.[0-9]#*") == "/a/b?.[0-9]#*"
    assert inner("file://localhost/a") == "/a"
    assert {inner(path) for path in ("/a/b", "//a//b/", "/a/./b/.", "file:///a//b")} == {"/a/b"}
    assert inner("/") == "/"
    assert inner("s3://bucket/key/") == "bucket/key"


@pytest.mark.parametrize("size", [1, 9, 14, 15, 16, 100, 1001])
def test_blocks_cover_a_file_without_overlap(size: int) -> None:
    found = blocks(File(1, "/a", size), split_bytes=10, is_splittable=True)

    assert [block.begin for block in found] == [0, *(block.stop for block in found[:-1])]
    assert found[-1].stop == size
    assert all(5 <= block.stop - block.begin <= 15 for block in found) or size < 5


def test_files_that_cannot_be_cut() -> None:
    assert len(blocks(File(1, "/a.gz", 1000), split_bytes=10, is_splittable=False)) == 1
    assert blocks(File(1, "/empty", 0), split_bytes=10, is_splittable=True) == ()
    assert not is_splittable("/a.json.GZ", Format.JSON)
    assert is_splittable("/a.gz", Format.PARQUET)
    assert not is_splittable("/a", Format.BINARY)


def test_a_local_listing(tmp_path: Path) -> None:
    for name in ("a.txt", "b/c.txt", "b/_d.txt", "_e/f.txt", "g.bin"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")

    def names(*patterns: str) -> list[str]:
        paths = tuple(str(tmp_path / pattern) for pattern in patterns)
        call = FilesSource(paths=paths, kind_of_file=Format.TEXT).list_page(1, None)
        return sorted(
            str(Path(file.path).relative_to(tmp_path)) for file in listed(call, LocalStore())
        )

    assert names("") == ["a.txt", "b/c.txt", "g.bin"]
    assert names("**/*.txt", "a*") == ["a.txt", "b/c.txt"]
    assert names("*.nothing") == []
    with pytest.raises(RefusedDiscoveryError, match="does not exist"):
        names("nowhere")
    with pytest.raises(RefusedDiscoveryError, match="not closed"):
        names("a[")
    with pytest.raises(RefusedDiscoveryError, match=r"'/.*\[z-a\]' is wrong: bad character range"):
        names("[z-a]")


def test_a_name_that_is_no_text_is_named(tmp_path: Path) -> None:
    bad = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")
    Path(bad).write_text("x")

    def listing(pattern: str) -> list[str]:
        call = FilesSource(paths=(f"{tmp_path}/{pattern}",), kind_of_file=Format.TEXT)
        return [file.path for file in listed(call.list_page(1, None), LocalStore())]

    assert listing("*.csv") == []
    with pytest.raises(RefusedDiscoveryError, match=r"\\udcff.txt' is not UTF-8: rename"):
        listing("*.txt")
