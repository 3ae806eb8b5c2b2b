"""`SourceReaderBase` in all its shapes, and a reader that derives `SourceReader` itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from balanced_source.api import BoundedSplit, Position, SourceReaderContext, SourceSplit
from balanced_source.reader import Fetchers, Threading
from balanced_source.testing.inline_fetchers import InlineFetchers
from balanced_source.testing.source_reader import SourceReaderContract
from balanced_source_adapters.fetchers import ThreadedFetchers
from support.bursts import BurstReader
from support.numbers import NumbersReader, NumbersSourceReader, NumbersSplit
from support.tapes import Shelf, TapeSplit


class Numbers(SourceReaderContract):
    fetchers: Callable[[Callable[[], NumbersReader], Threading], Fetchers[int, NumbersSplit]]
    shape: Threading

    def make_reader(self, context: SourceReaderContext) -> NumbersSourceReader:
        return NumbersSourceReader(type(self).fetchers(NumbersReader, self.shape), context)

    def splits(self) -> Sequence[BoundedSplit]:
        return [
            NumbersSplit(name=name, next=start, stop=start + 7)
            for name, start in (("a", 0), ("b", 5), ("c", 1))
        ]

    def records(self, split: SourceSplit) -> Sequence[tuple[str, int]]:
        assert isinstance(split, NumbersSplit)
        return [(split.name, number) for number in range(split.next, split.stop)]


class TestInlineOneAfterAnother(Numbers):
    fetchers, shape = InlineFetchers, Threading.ONE_AFTER_ANOTHER


class TestInlineOneReader(Numbers):
    fetchers, shape = InlineFetchers, Threading.ONE_READER


class TestInlineOnePerSplit(Numbers):
    fetchers, shape = InlineFetchers, Threading.ONE_PER_SPLIT


class TestThreadsOneAfterAnother(Numbers):
    fetchers, shape = ThreadedFetchers, Threading.ONE_AFTER_ANOTHER


class TestThreadsOneReader(Numbers):
    fetchers, shape = ThreadedFetchers, Threading.ONE_READER


class TestThreadsOnePerSplit(Numbers):
    fetchers, shape = ThreadedFetchers, Threading.ONE_PER_SPLIT


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedTape(TapeSplit, BoundedSplit):
    """A tape with a stop."""

    @property
    def stopping_position(self) -> Position:
        return self.stop


class Bursts(SourceReaderContract):
    """A reader that emits several records in a poll, and returns lists."""

    size: int

    def make_reader(self, context: SourceReaderContext) -> BurstReader:
        return BurstReader(Shelf(lengths={"a": 9, "b": 9}), self.size)

    def splits(self) -> Sequence[BoundedSplit]:
        return [BoundedTape(name="a", stop=7), BoundedTape(name="b", next=5, stop=9)]

    def records(self, split: SourceSplit) -> Sequence[tuple[str, int]]:
        assert isinstance(split, BoundedTape)
        return tuple((split.name, n) for n in range(split.next, split.stop or 0))


class TestBurstsOfTwo(Bursts):
    size = 2


class TestBurstsOfThree(Bursts):
    size = 3


class TestEverythingAtOnce(Bursts):
    size = 100
