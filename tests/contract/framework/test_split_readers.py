"""The split reader that tests of the framework use: one that blocks, and one that does not."""

import threading
from collections.abc import Sequence

from balanced_source.api import BoundedSplit
from balanced_source.testing.split_reader import SplitReaderContract
from support.numbers import NumbersReader, NumbersSplit


class TestNumbers(SplitReaderContract):
    def make_reader(self) -> NumbersReader:
        return NumbersReader()

    def splits(self) -> Sequence[BoundedSplit]:
        return [
            NumbersSplit(name=name, next=start, stop=start + 7)
            for name, start in (("a", 0), ("b", 5), ("c", 1))
        ]

    def elements(self, split: BoundedSplit) -> Sequence[int]:
        return range(int(split.position or 0), int(split.stopping_position or 0))

    def later(self, split: BoundedSplit) -> BoundedSplit:
        return split.at(int(split.position or 0) + 1)


class TestNumbersThatCome(TestNumbers):
    """Nothing is there until someone opens the gate; in the tests of waking up no one does."""

    gate: threading.Event | None = None

    def make_reader(self) -> NumbersReader:
        if self.gate is None:
            self.gate = threading.Event()
            self.gate.set()
        return NumbersReader(gate=self.gate)

    def unread(self) -> BoundedSplit:
        self.gate = threading.Event()
        return self.splits()[0]
