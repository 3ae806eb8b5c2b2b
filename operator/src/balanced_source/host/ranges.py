"""What is read: part of a split."""

from dataclasses import dataclass

from balanced_source.api import Position, SplitId


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRange:
    """Part of a split that one micro-batch reads: from `start`, up to but without `end`."""

    split_id: SplitId
    start: Position
    end: Position
