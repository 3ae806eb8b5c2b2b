"""`SourceReaderBase` in all its shapes."""

from collections.abc import Callable, Sequence

from balanced_source.api import BoundedSplit, SourceReaderContext, SourceSplit
from balanced_source.reader import Fetchers, InlineFetchers, Threading
from balanced_source.testing.source_reader import SourceReaderContract
from balanced_source_adapters.fetchers import ThreadedFetchers
from support.numbers import NumbersReader, NumbersSourceReader, NumbersSplit


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
