"""What is read: part of a split."""

from dataclasses import dataclass

from balanced_source.api import Position, SplitId


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRange:
    """Part of a split that one micro-batch reads: from `start`, up to but without `end`.

    Attributes:
        split_id: of the split.
        start: first position.
        end: first position after it.
        identity: what tells the split from another one with its id, such as the id of its topic;
            None: unknown.
        term: leadership under which the end was said, see `StreamOffset.terms`. A record of a later
            one was written in place of others that were cut from the log after the micro-batch was
            planned; None: unknown.
    """

    split_id: SplitId
    start: Position
    end: Position
    identity: str | None = None
    term: int | None = None
