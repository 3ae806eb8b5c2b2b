"""A block of a file: the unit of assigned work."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Self

from balanced_source.api import IDENTITY, STOP, BoundedSplit, Position, SplitId
from balanced_source.errors import ContractViolationError
from balanced_source.names import shown

SCOPE: Final = "files"
"""First member of each split's id."""


class File(NamedTuple):
    """A file as a listing shows it.

    Attributes:
        modified: time of the last change, in nanoseconds since the epoch.
        path: as the store names it.
        size: bytes.
    """

    modified: int
    path: str
    size: int

    @property
    def identity(self) -> str:
        """Text that tells this state of the file from another one with its path."""
        return f"{self.modified}-{self.size}"


def file_of(path: str, identity: str) -> File:
    """Return the file with this identity; inverse of `File.identity`.

    Raises:
        ContractViolationError: the text is no identity.
    """
    modified, _, size = identity.rpartition("-")
    try:
        return File(int(modified), path, int(size))
    except ValueError as error:
        raise ContractViolationError(f"{shown(identity)} does not identify a file") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSplit(BoundedSplit):
    """The bytes of a file from `offset` up to but without `stop`.

    Which records belong to a range of bytes depends on the format alone. So a block may be read in
    any number of ranges: each record belongs to exactly one of them.

    Attributes:
        file: as it was listed.
        begin: first byte of the block.
        offset: first byte that is not read yet.
        stop: first byte behind the block.
    """

    file: File
    begin: int
    offset: int
    stop: int

    @property
    def split_id(self) -> SplitId:
        return (SCOPE, self.file.path, self.begin)

    @property
    def position(self) -> Position:
        return self.offset

    @property
    def stopping_position(self) -> Position:
        return self.stop

    def at(self, position: Position) -> Self:
        return replace(self, offset=self.begin if position is None else position)

    def attributes(self) -> Mapping[str, Any]:
        return {STOP: self.stop, IDENTITY: self.file.identity}


def blocks(file: File, *, split_bytes: int, is_splittable: bool) -> tuple[BlockSplit, ...]:
    """Return the blocks of a file; none of an empty file.

    A rest of less than half a block joins the last one.

    Args:
        file: to cut.
        split_bytes: size of a block.
        is_splittable: whether reading may begin inside the file.
    """
    count = block_count(file, split_bytes=split_bytes, is_splittable=is_splittable)
    if not count:
        return ()
    begins = [number * split_bytes for number in range(count)]
    stops = [*begins[1:], file.size]
    return tuple(
        BlockSplit(file=file, begin=begin, offset=begin, stop=stop)
        for begin, stop in zip(begins, stops, strict=True)
    )


def block_count(file: File, *, split_bytes: int, is_splittable: bool) -> int:
    """Return how many blocks a file has; see `blocks`."""
    if file.size <= 0:
        return 0
    # A small rest would cost a split of its own, with little to read.
    return max(1, (file.size + split_bytes // 2) // split_bytes) if is_splittable else 1
