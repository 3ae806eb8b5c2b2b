"""Splits inside documents: two tables, positions of all and attributes of those that have any."""

from collections.abc import Mapping
from typing import Any, TypeVar

from balanced_source.api import Json, Position, Source, SourceSplit, SplitId
from balanced_source.documents import columns
from balanced_source.documents.columns import EncodeMap
from balanced_source.errors import ContractViolationError, CorruptDocumentError
from balanced_source.names import shown

SplitT = TypeVar("SplitT", bound=SourceSplit)


def encode_splits(splits: Mapping[SplitId, SplitT]) -> Json:
    """Splits as JSON."""
    return encode_tables(
        {split_id: split.position for split_id, split in splits.items()},
        {split_id: split.attributes() for split_id, split in splits.items()},
    )


def encode_tables(
    positions: Mapping[SplitId, Position],
    attributes: Mapping[SplitId, Mapping[str, Json]],
    *,
    encode_map: EncodeMap | None = None,
) -> Json:
    """The same, of what makes up the splits.

    Args:
        positions: of all splits.
        attributes: of the same splits, in the same order.
        encode_map: writes a table; None: a `TableEncoder` of its own.
    """
    encode_map = encode_map or columns.TableEncoder()
    non_empty = {split_id: dict(a) for split_id, a in attributes.items() if a}
    return {"positions": encode_map(positions), "attributes": encode_map(non_empty)}


def decode_splits(data: Any, source: Source[SplitT, Any]) -> dict[SplitId, SplitT]:
    """Inverse of `encode_splits`.

    Raises:
        CorruptDocumentError: not of that form.
    """
    attributes = columns.decode_map(data["attributes"])
    positions = columns.decode_map(data["positions"])
    try:
        return {
            s: source.create_split(s, position, attributes.get(s, {}))
            for s, position in positions.items()
        }
    except ContractViolationError as error:
        raise CorruptDocumentError(f"malformed table of splits: {shown(str(error))}") from error
