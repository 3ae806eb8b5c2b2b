"""Files of HDFS, by a client over a local folder; no test has a name node."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow import fs

from balanced_source.connectors.files import File, Store
from balanced_source.errors import RefusedDiscoveryError, TransientDiscoveryError
from balanced_source_adapters.files import hdfs
from balanced_source_adapters.files.hdfs import HdfsStore
from balanced_source_adapters.files.stores import store_of
from balanced_source_spark.contract.secrets import QuerySecrets


@pytest.fixture(autouse=True)
def _no_cache() -> None:
    hdfs._filesystem.cache_clear()


@pytest.fixture
def store() -> HdfsStore:
    return HdfsStore(fs.LocalFileSystem(), "n:8020")


def test_files_are_listed_folder_by_folder(store: HdfsStore, tmp_path: Path) -> None:
    for name in ("one", "a/two", "a/b/three"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    os.utime(tmp_path / "one", ns=(1, 2_000_000_000))

    found = {file.path: file.size for file in store.walk(str(tmp_path))}
    one = File(2_000_000_000, str(tmp_path / "one"), 3)

    assert found == {str(tmp_path / name): len(name) for name in ("one", "a/two", "a/b/three")}
    assert list(store.walk(one.path)) == [one]
    assert store.stat(one.path) == one
    assert store.stat(str(tmp_path / "a")) is None
    assert list(store.walk(str(tmp_path / "nothing"))) == []
    assert [store.exists(str(tmp_path / name)) for name in ("a", "nothing")] == [True, False]
    assert not store.is_ordered
    with store.open(one.path) as opened:
        assert opened.read() == b"one"
    with pytest.raises(FileNotFoundError):
        store.open(str(tmp_path / "nothing"))


def test_a_folder_that_vanishes_while_it_is_listed_is_empty(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "one").write_text("one")

    class Vanishing:
        def get_file_info(self, asked: Any) -> Any:
            found = fs.LocalFileSystem().get_file_info(asked)
            if isinstance(asked, fs.FileSelector) and (tmp_path / "gone").exists():
                (tmp_path / "gone").rmdir()
            return found

    vanishing: Any = Vanishing()
    found = list(HdfsStore(vanishing, "n:8020").walk(str(tmp_path)))
    assert [file.path for file in found] == [str(tmp_path / "one")]


def test_a_file_without_a_time_counts_as_the_oldest() -> None:
    info = SimpleNamespace(type=fs.FileType.File, mtime_ns=None, size=3)
    timeless: Any = SimpleNamespace(get_file_info=lambda _: info)
    assert HdfsStore(timeless, "n:8020").stat("/in") == File(0, "/in", 3)


@pytest.mark.parametrize(
    ("text", "says"), [("no route\nat Java", "no route"), ("", "OSError")], ids=["text", "no text"]
)
def test_a_name_node_that_does_not_answer_is_named(text: str, says: str) -> None:
    class Silent:
        def get_file_info(self, _: str) -> Any:
            raise OSError(text)

    silent: Any = Silent()
    with pytest.raises(
        TransientDiscoveryError, match=rf"^cannot list hdfs://n:8020/in: {says}\. Check the name"
    ):
        list(HdfsStore(silent, "n:8020").walk("/in"))


def opened(monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> list[Any]:
    asked: list[Any] = []

    def connect(*place: Any) -> Any:
        asked.append(place)
        if error is not None:
            raise error
        return fs.LocalFileSystem()

    monkeypatch.setattr(fs, "HadoopFileSystem", connect, raising=False)
    return asked


def test_the_name_node_is_that_of_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = opened(monkeypatch)
    for url in ("hdfs://n:8020/in", "hdfs://service", "hdfs:///in", "hdfs://n:8020"):
        assert isinstance(store_of(Store(), (url,), QuerySecrets()), HdfsStore)

    assert asked == [("n", 8020), ("service", 0), ("default", 0)]


@pytest.mark.parametrize(
    "error",
    [
        OSError("Unable to load libjvm\ndlopen(…) failed"),
        OSError("Unable to load libhdfs: ./libhdfs.so: cannot open shared object file"),
        ImportError("The pyarrow installation is not built with support for HadoopFileSystem"),
    ],
)
def test_a_missing_library_is_a_sentence_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    opened(monkeypatch, error)
    with pytest.raises(
        RefusedDiscoveryError, match="Install both in the images of driver"
    ) as caught:
        store_of(Store(), ("hdfs://n:1/in",), QuerySecrets())

    assert "\n" not in str(caught.value)


def test_a_refused_connection_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    opened(monkeypatch, OSError("HDFS connection failed"))
    with pytest.raises(
        TransientDiscoveryError, match=r"cannot connect to hdfs://n:1: HDFS connection failed\."
    ):
        store_of(Store(), ("hdfs://n:1/in",), QuerySecrets())


def test_pyarrow_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.fs", None)
    with pytest.raises(RefusedDiscoveryError, match=r"pyarrow, which is missing: install balanced"):
        store_of(Store(), ("hdfs://n:1/in",), QuerySecrets())
