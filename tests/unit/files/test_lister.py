"""Which listings the driver makes for the calls of an enumerator."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from balanced_source.connectors.files import File, FilesSource, Format
from balanced_source.connectors.files import source as module
from balanced_source.connectors.pull import Page
from balanced_source.errors import RefusedDiscoveryError
from balanced_source_adapters.files import connector
from balanced_source_adapters.files.connector import Lister
from balanced_source_adapters.files.file_store import FileStore
from balanced_source_spark.contract.secrets import QuerySecrets

if TYPE_CHECKING:
    import pyarrow as pa

SECOND = 1_000_000_000


class Memory(FileStore):
    """Files in memory, and where each listing began."""

    is_ordered = True
    has_folders = False

    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.walks: list[str] = []

    def write(self, at: int) -> None:
        path = f"bucket/in/{at:05}"
        self.files[path] = File(at * SECOND, path, 9)

    def walk(self, base: str, *, after: str = "", **_: Any) -> Iterator[File]:
        self.walks.append(after)
        yield from (file for path, file in sorted(self.files.items()) if path > after)

    def exists(self, base: str) -> bool:
        return any(path.startswith(f"{base}/") for path in self.files)

    def stat(self, path: str) -> File | None:
        return self.files.get(path)

    def open(self, path: str) -> "pa.NativeFile":
        raise FileNotFoundError(path)


class Scene:
    """A lister, and the cursor that an enumerator keeps."""

    def __init__(self, store: Memory, **more: Any) -> None:
        self.source = FilesSource(
            paths=("s3://bucket/in",),
            kind_of_file=Format.TEXT,
            late=10.0,
            discovery_interval=1,
            **more,
        )
        self.store, self.lister, self.cursor = store, Lister(QuerySecrets()), None

    def look(self) -> Page[Any]:
        page = self.lister(self.source.list_page(1, self.cursor))
        self.cursor = page.cursor
        return page

    def read_all(self) -> list[str]:
        found: list[str] = []
        while True:
            page = self.look()
            found += [str(split.split_id[1]) for split in page.splits]
            if not page.has_more:
                return found


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Memory:
    made = Memory()
    monkeypatch.setattr(connector, "store_of", lambda *_: made)
    monkeypatch.setattr(module, "PAGE", 10)
    return made


def test_one_listing_serves_several_pages(store: Memory) -> None:
    for at in range(100):
        store.write(at)

    assert sorted(Scene(store).read_all()) == sorted(store.files)
    assert len(store.walks) < 4, "of 10 pages"


def test_a_page_of_another_cursor_is_listed_again(store: Memory) -> None:
    """Such as after the operator went back to an older state."""
    for at in range(100):
        store.write(at)
    scene = Scene(store)
    first = scene.look()
    scene.look()
    scene.cursor = first.cursor

    assert [split.split_id[1] for split in scene.look().splits] == [
        f"bucket/in/{at:05}" for at in range(10, 20)
    ]


def test_where_names_grow_most_looks_begin_at_the_window(
    store: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WHOLE_EVERY", 5)
    scene, found = Scene(store, names_grow=True), list[str]()
    for at in range(0, 400, 4):
        store.write(at)
        found += scene.read_all()

    assert found == sorted(store.files)
    whole = [number for number, after in enumerate(store.walks) if not after]
    assert 15 < len(whole) < 30, "one of five"
    assert max(after for after in store.walks) > "bucket/in/0035"


def test_objects_of_a_folder_may_all_be_deleted_once_it_was_read(store: Memory) -> None:
    """Archived, for instance. At the first look, it is the spelling that is wrong."""
    scene = Scene(store)
    with pytest.raises(RefusedDiscoveryError, match="bucket/in does not exist: check the path"):
        scene.look()
    store.write(1)
    assert len(scene.read_all()) == 1

    store.files.clear()
    assert scene.read_all() == []
    store.write(2)
    assert scene.read_all() == ["bucket/in/00002"]


def test_without_that_every_look_is_whole(store: Memory) -> None:
    scene = Scene(store)
    for at in range(5):
        store.write(at)
        scene.read_all()

    assert set(store.walks) == {""}


@pytest.mark.parametrize("pattern", ["", "/*.parquet", "/**"])
def test_a_folder_of_a_file_sink_is_named_once(tmp_path: Path, pattern: str) -> None:
    """Spark leaves files of failed micro-batches there, which its own source does not read."""
    lister = Lister(QuerySecrets())
    (tmp_path / "part-0.parquet").write_text("rows")

    def looked() -> list[str]:
        source = FilesSource(paths=(f"{tmp_path}{pattern}",), kind_of_file=Format.PARQUET)
        with capture_logs() as logs:
            assert len(lister(source.list_page(1, None)).splits) == 1
        return [entry["folder"] for entry in logs]

    (tmp_path / "_spark_metadata").mkdir()
    assert looked() == [str(tmp_path)]
    assert looked() == []


def test_a_folder_of_others_is_not_named(tmp_path: Path) -> None:
    (tmp_path / "part-0.parquet").write_text("rows")
    source = FilesSource(paths=(str(tmp_path),), kind_of_file=Format.PARQUET)

    with capture_logs() as logs:
        Lister(QuerySecrets())(source.list_page(1, None))

    assert logs == []
