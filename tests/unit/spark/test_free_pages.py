"""Worker processes give back what they have freed."""

import platform

import psutil
import pytest

from balanced_source.host import SplitRange
from balanced_source_spark import task_samples
from balanced_source_spark.heap import FreedMemory, trim
from balanced_source_spark.partition import ReaderPartition, SampleTarget

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
    now, trims = [100.0], list[float]()
    memory = FreedMemory(lambda: trims.append(now[0]), every=60.0, clock=lambda: now[0])

    for now[0] in (100.0, 159.0, 161.0, 162.0, 220.0, 222.0):
        memory.note_task()

    assert trims == [161.0, 222.0]


def test_each_task_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = list[int]()
    monkeypatch.setattr(task_samples.freed_memory, "note_task", lambda: ended.append(1))

    class Reader:
        def read(self, partition: ReaderPartition) -> object:
            assert not ended
            return iter(())

    whole = SplitRange(split_id=("s", 0), start=0, end=0)
    target = SampleTarget(host="127.0.0.1", port=9, token="t")  # noqa: S106
    partition = ReaderPartition(subtask_id=0, ranges=(whole,), settings={}, samples=target)
    list(task_samples.measuring(Reader).read(partition))  # type: ignore[arg-type,return-value]

    assert ended == [1]
