"""The hybrid source keeps the contracts of all sources, in its first part and in its last one."""

from collections.abc import Sequence

from balanced_source.api import AsyncCall, SplitId
from balanced_source.connectors.hybrid import HybridSource, HybridSplit
from balanced_source.testing.enumerator import EnumeratorContract
from balanced_source.testing.serializer import SerializerContract, split_serializer
from support.hybrid_world import answer, two_parts
from support.pull_source import Numbers

SOURCE = two_parts(5, 2, length=3)
NAMES = SOURCE.names


class TestFirstPart(EnumeratorContract):
    """Nothing is read here, so the second part never begins."""

    is_pull = True

    def source(self) -> HybridSource:
        return SOURCE

    def split_ids(self) -> frozenset[SplitId]:
        return frozenset((NAMES[0], "lists", f"list-{number}") for number in range(5))

    def execute(self, call: AsyncCall) -> object:
        return answer(call)


class TestLastPart(EnumeratorContract):
    """The first part is empty, so the second one begins at once."""

    is_pull = True

    def source(self) -> HybridSource:
        return two_parts(0, 4, length=3)

    def split_ids(self) -> frozenset[SplitId]:
        return frozenset((NAMES[1], "lists", f"list-{number}") for number in range(4))

    def execute(self, call: AsyncCall) -> object:
        return answer(call)


class TestSerializer(SerializerContract):
    serializer = split_serializer(SOURCE)
    values: Sequence[HybridSplit] = (
        HybridSplit(part=NAMES[0], split=Numbers(name="list-1", number=1, stop=3)),
    )
    released = {
        1: {
            b'[["-0","lists","list-1"],1,{"stop":3}]': HybridSplit(
                part=NAMES[0], split=Numbers(name="list-1", number=1, stop=3)
            )
        }
    }
