import threading
import time
from pathlib import Path

import pytest

from testbed.cache import Cache, content_key, default_root


def test_the_root_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    monkeypatch.delenv("BALANCED_SOURCE_CACHE", raising=False)
    assert default_root() == Path("/somewhere/balanced-source")
    monkeypatch.setenv("BALANCED_SOURCE_CACHE", "/own")
    assert default_root() == Path("/own")


def test_a_key_depends_on_content_order_and_borders(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("text")
    assert content_key(file) == content_key("text") == content_key(b"text")
    assert len({content_key("ab", "c"), content_key("a", "bc"), content_key("c", "ab")}) == 3


def test_an_artefact_is_built_once(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    builds: list[Path] = []

    def build(target: Path) -> None:
        builds.append(target)
        (target / "file").write_text("done")

    first = cache.artefact("thing", "1", build)
    assert cache.artefact("thing", "1", build) == first == cache.find("thing", "1")
    assert (first / "file").read_text() == "done"
    assert len(builds) == 1
    assert cache.artefact("thing", "2", build) != first


def test_a_failed_build_leaves_nothing_behind(tmp_path: Path) -> None:
    def build(target: Path) -> None:
        (target / "half").write_text("")
        raise RuntimeError("no")

    cache = Cache(tmp_path)
    with pytest.raises(RuntimeError):
        cache.artefact("thing", "1", build)
    assert cache.find("thing", "1") is None
    assert [path.name for path in tmp_path.iterdir()] == ["locks"]


def test_leftovers_of_a_killed_build_are_not_used_by_the_next(tmp_path: Path) -> None:
    partial = tmp_path / ".partial-thing-1"
    partial.mkdir()
    (partial / "old").write_text("")
    folder = Cache(tmp_path).artefact("thing", "1", lambda target: (target / "new").touch())
    assert [path.name for path in folder.iterdir()] == ["new"]


def test_two_runs_at_once_build_once(tmp_path: Path) -> None:
    builds: list[Path] = []

    def build(target: Path) -> None:
        builds.append(target)
        time.sleep(0.05)  # long enough for the other one to come

    threads = [
        threading.Thread(target=Cache(tmp_path).artefact, args=("thing", "1", build))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(builds) == 1
