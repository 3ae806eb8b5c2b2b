"""Heaps of a worker's threads, counted by the C library itself in a process of its own."""

import ctypes
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from balanced_source_adapters import heap
from balanced_source_adapters.heap import CHOSEN, THRESHOLDS, give_back, reuse_pages, share_one_heap

THREADS_ALLOCATE = """
import ctypes, sys, threading
from balanced_source_adapters.heap import share_one_heap
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
libc.malloc.restype = ctypes.c_void_p
done = "yes" in sys.argv and share_one_heap()
together = threading.Barrier(4)
def allocate():
    together.wait()
    libc.malloc(ctypes.c_size_t(50_000))
    together.wait()
threads = [threading.Thread(target=allocate) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
print(done)
"""


def heaps(path: str, *arguments: str, **environment: str) -> tuple[str, int]:
    """What `share_one_heap` said, and the number of heaps after four threads have allocated."""
    call = [sys.executable, "-c", THREADS_ALLOCATE, path, *arguments]
    said = subprocess.run(call, env=environment, capture_output=True, text=True, check=True).stdout  # noqa: S603
    return said.strip(), Path(path).read_text(encoding="ascii").count("<heap nr=")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "malloc.xml")


def test_threads_share_the_main_heap(path: str) -> None:
    assert heaps(path)[1] > 1, "that is what is prevented"
    assert heaps(path, "yes") == ("True", 1)


def test_a_chosen_heap_size_is_kept(path: str) -> None:
    said, count = heaps(path, "yes", MALLOC_ARENA_MAX="8")

    assert said == "False"
    assert count > 1


def test_a_worker_asks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOSEN, "2")
    share_one_heap.cache_clear()
    assert not share_one_heap()
    monkeypatch.delenv(CHOSEN)

    assert not share_one_heap(), "threads may have come meanwhile"
    share_one_heap.cache_clear()


@pytest.mark.parametrize(
    ("platform", "is_chosen", "expected"),
    [("linux", False, True), ("linux", True, False), ("darwin", False, False)],
)
def test_one_heap_is_asked_for_where_the_c_library_can_and_the_user_has_not_chosen(
    monkeypatch: pytest.MonkeyPatch, platform: str, is_chosen: bool, expected: bool
) -> None:
    asked: list[tuple[int, int]] = []
    library = SimpleNamespace(mallopt=lambda *setting: asked.append(setting) or 1)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    # An earlier test of this process may have looked functions of the real library up.
    monkeypatch.setattr(heap, "_of_c", heap._of_c.__wrapped__)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.delenv(CHOSEN, raising=False)
    if is_chosen:
        monkeypatch.setenv(CHOSEN, "2")

    assert share_one_heap.__wrapped__() == expected
    assert asked == ([(-8, 1)] if expected else []), "M_ARENA_MAX of glibc"


BLOCKS_COME_AND_GO = """
import resource, sys
from balanced_source_adapters.heap import reuse_pages
done = "yes" in sys.argv and reuse_pages()
def come_and_go():
    for _ in range(50):
        data = b"x" * 2_000_000
        part = data[:-1]
        del data, part
come_and_go()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
come_and_go()
print(done, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*arguments: str, **environment: str) -> tuple[str, int]:
    """What `reuse_pages` said, and the page faults of 50 times two blocks of 2 MB."""
    call = [sys.executable, "-c", BLOCKS_COME_AND_GO, *arguments]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    said, count = done.stdout.split()
    return said, int(count)


def test_blocks_that_come_and_go_use_the_same_pages() -> None:
    assert faults()[1] > 10_000, "that is what is prevented"
    said, count = faults("yes")
    assert (said, count < 1000) == ("True", True)


@pytest.mark.parametrize("name", THRESHOLDS)
def test_a_chosen_threshold_is_kept(name: str) -> None:
    assert faults("yes", **{name: "1000000"})[0] == "False"


def test_thresholds_are_set_where_the_c_library_can(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    library = SimpleNamespace(mallopt=lambda *setting: asked.append(setting) or 1)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    monkeypatch.setattr(heap, "_of_c", heap._of_c.__wrapped__)
    for name in THRESHOLDS:
        monkeypatch.delenv(name, raising=False)

    assert reuse_pages.__wrapped__()
    assert asked == [(-3, 32 << 20), (-1, 16 << 20)], "M_MMAP_THRESHOLD and M_TRIM_THRESHOLD"
    library.mallopt = lambda *_: 0
    assert not reuse_pages.__wrapped__()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not reuse_pages.__wrapped__()


def test_pages_are_given_back_again_and_again_until_the_end() -> None:
    stop, given = threading.Event(), list[int]()

    def give() -> None:
        given.append(len(given))
        if len(given) == 3:
            stop.set()

    give_back(stop, 0.001, give)

    assert given == [0, 1, 2]


def test_a_process_keeps_itself_small_with_one_thread() -> None:
    code = (
        "import threading; from balanced_source_adapters.heap import keep_small;"
        " keep_small(); keep_small();"
        " print(*(t.name for t in threading.enumerate() if t.daemon))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603

    assert done.stdout.split() == ["bsrc-heap"]
