"""The enumerator whose readers ask keeps the contract of all enumerators."""

from collections.abc import Sequence
from typing import Any

from balanced_source.api import AsyncCall, SplitId
from balanced_source.testing.enumerator import EnumeratorContract
from balanced_source.testing.serializer import SerializerContract, split_serializer
from support.pull_source import NumberLists, Numbers


class TestPullingEnumerator(EnumeratorContract):
    is_pull = True

    def source(self) -> NumberLists:
        return NumberLists(count=7)

    def split_ids(self) -> frozenset[SplitId]:
        return frozenset(("lists", name) for name in self.source().names)

    def execute(self, call: AsyncCall) -> Any:
        return self.source().execute(call)


class TestNumbersSerializer(SerializerContract):
    serializer = split_serializer(NumberLists())
    values: Sequence[Numbers] = (Numbers(name="list-0", number=1, stop=2),)
    released = {1: {b'[["lists","list-0"],1,{"stop":2}]': Numbers(name="list-0", number=1, stop=2)}}
