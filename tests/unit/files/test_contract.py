"""The file source keeps the contracts of all sources."""

from collections.abc import Sequence
from typing import Any

import pytest

from balanced_source.api import AsyncCall, SplitId
from balanced_source.connectors.files import (
    BlockSplit,
    File,
    FilesSource,
    Format,
    ListFiles,
    page_of,
)
from balanced_source.errors import ContractViolationError
from balanced_source.testing.enumerator import EnumeratorContract
from balanced_source.testing.serializer import SerializerContract, split_serializer

SOURCE = FilesSource(paths=("/in",), kind_of_file=Format.TEXT, split_bytes=10, ahead=1)
LISTED = [File(1_000_000_000 + number, f"/in/{number}", 25) for number in range(4)]


class TestEnumerator(EnumeratorContract):
    is_pull = True

    def source(self) -> FilesSource:
        return SOURCE

    def split_ids(self) -> frozenset[SplitId]:
        return frozenset(
            ("files", f"/in/{number}", begin) for number in range(4) for begin in (0, 10, 20)
        )

    def execute(self, call: AsyncCall) -> Any:
        assert isinstance(call, ListFiles)
        return page_of(call, LISTED).page


class TestSerializer(SerializerContract):
    serializer = split_serializer(SOURCE)
    values: Sequence[BlockSplit] = (BlockSplit(file=LISTED[0], begin=10, offset=12, stop=20),)
    released = {
        1: {
            b'[["files","/in/0",10],12,{"id":"1000000000-25","stop":20}]': BlockSplit(
                file=LISTED[0], begin=10, offset=12, stop=20
            )
        }
    }


def test_a_block_at_an_unknown_position_is_read_from_its_beginning() -> None:
    block = BlockSplit(file=LISTED[0], begin=10, offset=12, stop=20)

    assert (block.at(None).offset, block.at(15).offset) == (10, 15)


@pytest.mark.parametrize("split_id", [("other", "/in/0", 0), ("files", "/in/0", "0")])
def test_an_id_that_does_not_name_a_block_of_a_file_is_a_mistake(split_id: SplitId) -> None:
    with pytest.raises(ContractViolationError, match="is not a block of a file"):
        SOURCE.create_split(split_id, None, {"id": "1000000000-25", "stop": 20})
