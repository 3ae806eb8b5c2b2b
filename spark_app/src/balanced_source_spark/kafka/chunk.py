"""Messages that came together. Each of their accessors is called once, for all of them in one go.

A loop in Python that looks at topic, partition and offset of each message takes longer than
everything else that is done to it. A method of the class, called by `map`, takes a fifth of
`operator.methodcaller`'s time, and `struct` packs numbers faster than `array` or Arrow.
"""

import struct
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, Literal, TypeVar

import pyarrow as pa
from confluent_kafka import Message
from pyarrow import compute

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of a chunk: messages of one partition, at growing offsets.

    Attributes:
        key: topic and partition.
        start: index of its first message.
        stop: index after its last one.
        last: offset of its last one.
    """

    key: tuple[str, int]
    start: int
    stop: int
    last: int


class Chunk:
    """Messages without errors.

    Args:
        messages: as they were delivered.
        topic: of all of them, where that is known.
    """

    def __init__(self, messages: Sequence[Message], *, topic: str | None = None) -> None:
        self.messages = messages
        self._topic = topic

    def __len__(self) -> int:
        return len(self.messages)

    @cached_property
    def _offsets(self) -> "memoryview[int]":
        return self._packed("q", Message.offset)

    @cached_property
    def offsets(self) -> pa.Array:
        """Of each message."""
        return _column(self._offsets)

    @cached_property
    def partitions(self) -> pa.Array:
        """Of each message."""
        return _column(self._packed("i", Message.partition))

    @cached_property
    def topics(self) -> pa.Array:
        """Of each message. Mostly it is one: repeated, not built from as many strings."""
        if self._topic is None:
            names = self.each(Message.topic)
            if not names or names.count(names[0]) < len(names):
                return pa.array(names, pa.string())
            self._topic = names[0]
        return pa.repeat(pa.scalar(self._topic, pa.string()), len(self))

    @cached_property
    def _stamps(self) -> "memoryview[int]":
        """Kind and milliseconds of each message's time in turn, which one accessor gives."""
        return _pack("q", [*chain.from_iterable(map(Message.timestamp, self.messages))])

    @property
    def millis(self) -> pa.Array:
        """Of each message's time."""
        return _column(self._stamps[1::2])

    @property
    def time_kinds(self) -> pa.Array:
        """Of each message's time, as librdkafka counts them: 0 none, 1 created, 2 appended."""
        return _column(self._stamps[::2])

    def each(self, accessor: Callable[[Message], T]) -> list[T]:
        """What an accessor gives of each message."""
        return list(map(accessor, self.messages))

    def _packed(
        self, kind: Literal["i", "q"], accessor: Callable[[Message], int | None]
    ) -> "memoryview[int]":
        return _pack(kind, [*map(accessor, self.messages)])

    def runs(self) -> Iterator[Run]:
        """All of it, in order."""
        stops = (
            [*compute.indices_nonzero(self._breaks()).to_pylist(), len(self) - 1]
            if len(self)
            else []
        )
        for before, final in pairwise([-1, *stops]):
            message, start = self.messages[final], before + 1
            yield Run(
                (message.topic() or "", message.partition() or 0),
                start,
                final + 1,
                self._offsets[final],
            )

    def _breaks(self) -> pa.Array:
        """Whether the next message belongs to another run."""
        partitions, offsets, topics = (
            _neighbours(self.partitions),
            _neighbours(self.offsets),
            _neighbours(self.topics),
        )
        found = compute.or_(
            compute.not_equal(*partitions), compute.less_equal(offsets[1], offsets[0])
        )
        return found if self._topic is not None else compute.or_(found, compute.not_equal(*topics))

    def index(self, run: Run, offset: int) -> int:
        """Of the first message of a run that is at an offset or beyond it."""
        return bisect_left(self._offsets, offset, run.start, run.stop)

    def part(self, pieces: Sequence[tuple[int, int]]) -> "Chunk":
        """Only what lies between these indices."""
        if sum(stop - start for start, stop in pieces) == len(self):
            return self
        return Chunk(
            [m for start, stop in pieces for m in self.messages[start:stop]], topic=self._topic
        )


def _neighbours(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    return values.slice(0, len(values) - 1), values.slice(1)


def _pack(kind: Literal["i", "q"], numbers: Sequence[Any]) -> "memoryview[int]":
    if not numbers:
        return memoryview(array(kind))  # Python casts no view of nothing
    return memoryview(struct.pack(f"{len(numbers)}{kind}", *numbers)).cast(kind)


def _column(packed: "memoryview[int]") -> pa.Array:
    """Numbers without nulls."""
    kind = pa.int32() if packed.format == "i" else pa.int64()
    whole = packed if packed.contiguous else packed.tobytes()
    return pa.Array.from_buffers(kind, len(packed), [None, pa.py_buffer(whole)])
