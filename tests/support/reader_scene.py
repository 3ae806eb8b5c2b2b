"""One source reader over numbers, in any shape of threading, and what came out of it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from balanced_source.api import InputStatus
from balanced_source.reader import Fetchers, SplitOutputs, Threading
from balanced_source.testing.inline_fetchers import InlineFetchers
from balanced_source.testing.source_reader import Context
from balanced_source_adapters.fetchers import ThreadedFetchers
from support.numbers import NumbersReader, NumbersSourceReader, NumbersSplit
from testbed.waiting import wait_until

Make = Callable[[Callable[[], NumbersReader]], Fetchers[int, NumbersSplit]]


def makers() -> Iterator[Any]:
    for shape in Threading:
        yield pytest.param(
            lambda make, shape=shape: InlineFetchers(make, shape), id=f"inline-{shape.value}"
        )
        yield pytest.param(
            lambda make, shape=shape: ThreadedFetchers(make, shape), id=f"threads-{shape.value}"
        )


class Scene:
    """A reader, its split readers and what came out."""

    def __init__(self, make: Make, **reader: Any) -> None:
        self.split_readers: list[NumbersReader] = []
        self.context = Context()

        def made() -> NumbersReader:
            self.split_readers.append(NumbersReader(**reader))
            return self.split_readers[-1]

        self.reader = NumbersSourceReader(make(made), self.context)
        self.records: list[tuple[str, int]] = []
        self.watermarks: list[int] = []
        self.output: SplitOutputs[tuple[str, int]] = SplitOutputs(
            lambda record, _: self.records.append(record), self.watermarks.append
        )
        self.reader.start()

    def poll(self) -> InputStatus:
        return self.reader.poll_next(self.output)

    def read_until(self, condition: Callable[[], bool]) -> None:
        def polled() -> bool:
            return condition() or (self.poll() is not None and condition())

        wait_until(polled, 20, "records", interval=0.001)

    def read_to_the_end(self) -> list[tuple[str, int]]:
        self.reader.notify_no_more_splits()
        wait_until(
            lambda: self.poll() is InputStatus.END_OF_INPUT, 20, "the end of input", interval=0.001
        )
        self.reader.close()
        return self.records

    def of(self, name: str) -> list[int]:
        return [number for split, number in self.records if split == name]
