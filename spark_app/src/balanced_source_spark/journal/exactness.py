"""Checks what a connector says of positions, before it is sealed.

A record of the journal is never changed.
"""

from collections.abc import Collection, Mapping
from typing import Any

from balanced_source.api import Json, Position, SourceReader, SplitId
from balanced_source.errors import ContractViolationError
from balanced_source_spark.contract.readers import ReadersHalf


def checked_split(
    half: ReadersHalf[Any, Any, Any],
    split_id: SplitId,
    position: Position,
    attributes: Mapping[str, Json],
) -> Any:
    """Return the split that the half makes.

    Raises:
        ContractViolationError: it is another split, or begins elsewhere. What it reads would be
            counted for no one.
    """
    made = half.split(split_id, position, attributes)
    found = getattr(made, "split_id", None)
    if found != split_id:
        raise ContractViolationError(
            f"split of the connector's Spark half was asked for split {split_id}, and returned"
            f" {found!r}: return the split with the same id. Its parts must keep their types"
        )
    if position is not None and made.position != position:
        raise ContractViolationError(
            f"split of the connector's Spark half was asked for split {split_id} at position"
            f" {position}, and returned it at {made.position!r}: begin at the position that was"
            " asked for"
        )
    return made


def check_known(found: Collection[SplitId], own: Collection[SplitId]) -> None:
    """Check the ids of a snapshot. A split that is missing in a snapshot counts as read to its end.

    Raises:
        ContractViolationError: the reader was not given one of these splits.
    """
    for split_id in found:
        if split_id not in own:
            raise ContractViolationError(
                f"snapshot_state of the reader returned split {split_id!r}, which it was not given:"
                " return the splits of add_splits, with the same ids"
            )


def check_moves(starts: Mapping[SplitId, Position], moved: Mapping[SplitId, Position]) -> None:
    """Check that positions are whole numbers, and have grown.

    Raises:
        ContractViolationError: one is not, or has not.
    """
    for split_id, position in moved.items():
        if type(position) is not int:
            raise ContractViolationError(
                f"the reader is at position {position!r} of split {split_id}, a"
                f" {type(position).__name__}: a position is an int that grows. If the source has"
                " cursors of another kind, count its records instead"
            )
        check_forward(split_id, starts[split_id], position)


def check_forward(split_id: SplitId, before: Position, now: Position) -> None:
    """Check that a position has not gone back while it was read.

    Records that come in another order than their positions would be lost, or come twice, when the
    range is read again.

    Raises:
        ContractViolationError: it has.
    """
    # What is no whole number is told of before the range is sealed.
    if type(before) is int and type(now) is int and now < before:
        raise ContractViolationError(
            f"the reader went back from position {before} of split {split_id} to {now}: a position"
            " only grows, so records must come in the order of their positions"
        )


def check_emitted(split_id: SplitId, before: Position, now: Position) -> None:
    """Check that a record has moved its split on.

    Raises:
        ContractViolationError: it has not.
    """
    if type(before) is int and type(now) is int and now == before:
        raise ContractViolationError(
            f"the reader has emitted a record, and split {split_id} stays at {before}: move the"
            " position of a split behind each record that it emits"
        )


def checked_gaps(reader: SourceReader[Any, Any]) -> Mapping[SplitId, int]:
    """Return `SourceReader.skipped_gaps`.

    Raises:
        ContractViolationError: a number is not a whole one above 0.
    """
    advice = "return whole numbers, and leave out splits without a gap"
    return _checked_numbers("skipped_gaps", reader.skipped_gaps(), least=1, advice=advice)


def checked_millis(reader: SourceReader[Any, Any]) -> Mapping[SplitId, int]:
    """Return `SourceReader.millis_behind`.

    Raises:
        ContractViolationError: it is not in whole milliseconds, or negative.
    """
    advice = "return whole milliseconds from 0 on, and leave out splits of which that is unknown"
    return _checked_numbers("millis_behind", reader.millis_behind(), least=0, advice=advice)


def _checked_numbers(
    method: str, found: Mapping[SplitId, int], *, least: int, advice: str
) -> Mapping[SplitId, int]:
    for split_id, number in found.items():
        if type(number) is not int or number < least:
            raise ContractViolationError(
                f"{method} of the reader returned {number!r} for split {split_id}: {advice}"
            )
    return found
