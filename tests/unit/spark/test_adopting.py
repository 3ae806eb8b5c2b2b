"""What waits for executors: a larger number of readers of a driver that reads already."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.documents.assignment import Assignment
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source_spark.executors import AdoptionGate
from balanced_source_spark.host_runtime import HostRuntime
from support.memory_channel import MemoryChannel
from testbed.waiting import wait_until

SPLITS = [("main", "orders", number) for number in range(5)]


class NoExecutors(AdoptionGate):
    """Executors never come."""

    def __init__(self) -> None:
        super().__init__(None)
        self.asked: list[dict[str, int]] = []

    def __call__(self, **numbers: int) -> bool:
        self.asked.append(numbers)
        return False


class Scene:
    """A driver that has started again with a checkpoint of epoch 3 and one reader."""

    def __init__(self) -> None:
        self.channel, self.gate = MemoryChannel(), NoExecutors()
        self.runtime = HostRuntime(self.channel, gate=self.gate)
        read: Any = {"epoch": 3, "parallelism": 1, "readers": (0,)}
        owners, positions = dict.fromkeys(SPLITS, 0), dict.fromkeys(SPLITS, 7)
        self.runtime.committed(StreamOffset(**read, owners=owners, positions=positions))
        wait_until(lambda: self.channel.reports, 20, "registration", interval=0.005)

    def publish(self, epoch: int, parallelism: int, *, hosts: int = 1) -> None:
        self.channel.publish(
            Assignment(
                epoch=epoch,
                parallelism=parallelism,
                incarnations={str(number): 1 for number in range(hosts)},
                owners={s: number % parallelism for number, s in enumerate(SPLITS)},
                starts=dict.fromkeys(SPLITS, 7),
            )
        )

    def adopts(self) -> int:
        """Plan a micro-batch; return its number of readers."""
        wait_until(lambda: self.runtime.base() is not None, 20, "an assignment", interval=0.005)
        base = self.runtime.base()
        assert base is not None
        self.runtime.planned(replace(base, starts=base.starts))
        return len(base.readers)


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.runtime.close()


def test_a_driver_that_starts_waits_for_no_executors(scene: Scene) -> None:
    """Nothing is read meanwhile that could continue with fewer readers."""
    scene.publish(4, parallelism=3)

    assert scene.adopts() == 3
    assert scene.gate.asked == []


def test_splits_of_the_checkpoint_that_another_host_has_now_are_never_read_again(
    scene: Scene,
) -> None:
    """A query that ends by itself asks more than once before it logs: it waits for splits."""
    scene.publish(4, parallelism=4, hosts=2)
    wait_until(lambda: scene.runtime.base() is not None, 20, "an assignment", interval=0.005)

    again = scene.runtime.base()

    assert again is not None
    assert (again.epoch, again.readers) == (4, (0, 2))
    assert again.positions.keys() == {s for s in SPLITS if s[2] % 4 in (0, 2)}


def test_a_driver_that_reads_continues_as_it_is_until_executors_have_come(scene: Scene) -> None:
    scene.publish(4, parallelism=3)
    scene.adopts()

    scene.publish(5, parallelism=5)

    assert scene.adopts() == 3
    assert {"adopted": 3, "wanted": 5} in scene.gate.asked
