"""Worker processes give back what they have freed, and spare the collector what stays."""

import gc
import platform
import weakref
from collections.abc import Iterator

import psutil
import pytest

from balanced_source.host import SplitRange
from balanced_source_adapters.heap import trim
from balanced_source_spark import task_samples
from balanced_source_spark.partition import ReaderPartition, SampleTarget
from balanced_source_spark.worker_memory import WorkerMemory, settle

MIB = 1 << 20


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs the allocator of glibc")
def test_pages_between_living_blocks_are_given_back() -> None:
    # One block in four thousand lives, as the last one, so that the heap cannot shrink at its end.
    blocks = [bytes(1000) for _ in range(80_000)]
    living = blocks[3999::4000]
    full = psutil.Process().memory_info().rss
    del blocks

    trim()

    assert full - psutil.Process().memory_info().rss > 40 * MIB
    assert len(living) == 20


def test_it_happens_at_the_end_of_a_task_and_not_more_often_than_it_should() -> None:
    now, trims, settled = [100.0], list[float](), list[float]()
    memory = WorkerMemory(
        lambda: settled.append(now[0]),
        lambda: trims.append(now[0]),
        every=60.0,
        clock=lambda: now[0],
    )

    for now[0] in (100.0, 159.0, 161.0, 162.0, 220.0, 222.0):
        memory.note_task()

    assert trims == [161.0, 222.0]
    assert settled == [100.0, 161.0, 222.0]


class Loop:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def _thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("_thawed")
def test_the_collector_looks_no_more_at_what_stays_and_finds_all_garbage_the_next_time() -> None:
    gc.unfreeze()
    loop = Loop()
    seen = weakref.ref(loop)

    settle()
    assert gc.get_freeze_count() > 10_000, "objects of modules"
    del loop
    gc.collect()
    assert seen() is not None, "it was set aside while it was in use"

    settle()
    assert seen() is None


@pytest.mark.parametrize("target", [None, SampleTarget(host="127.0.0.1", port=9, token="t")])  # noqa: S106
def test_each_task_counts(monkeypatch: pytest.MonkeyPatch, target: SampleTarget | None) -> None:
    """Also one of a batch query, which sends no samples."""
    begun, ended = list[int](), list[int]()
    monkeypatch.setattr(task_samples, "share_one_heap", lambda: begun.append(1))
    monkeypatch.setattr(task_samples.worker_memory, "note_task", lambda: ended.append(1))

    class Reader:
        def read(self, partition: ReaderPartition) -> object:
            assert begun, "a client that is made before keeps heaps of its own"
            assert not ended
            return iter(())

    whole = SplitRange(split_id=("s", 0), start=0, end=0)
    partition = ReaderPartition(subtask_id=0, ranges=(whole,), settings={}, samples=target)
    list(task_samples.measuring(Reader).read(partition))  # type: ignore[arg-type,return-value]

    assert ended == [1]
