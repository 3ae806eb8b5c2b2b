"""Relates what a broker says of the ends of splits to the splits that a query holds. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from balanced_source.api import IDENTITY, STOP, SplitId, is_other
from balanced_source.documents.stream_offset import StreamOffset


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitEnd:
    """States what a broker says of the split that has an id now.

    Attributes:
        end: first position that cannot be read yet.
        identity: what tells the split from a former one with the same id; None: the broker does not say.
    """

    end: int
    identity: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """States what the ends mean for the splits of one stream offset.

    Attributes:
        ends: how far each split can be read, at most to its stop; without splits whose end is unknown.
        recreated: splits that were deleted, and whose ids other splits have now. Nothing of them can be read any more.
    """

    ends: Mapping[SplitId, int] = field(default_factory=dict)
    recreated: frozenset[SplitId] = frozenset()


def look(base: StreamOffset, known: Mapping[SplitId, SplitEnd]) -> Look:
    """Returns what the ends mean for the splits of `base`.

    Identities and stops are those of the offset in use. The newest assignment may be another epoch: it waits while
    executors start, and gives other identities to the same ids.
    """
    ends: dict[SplitId, int] = {}
    recreated = set()
    for split_id in base.positions:
        if (answer := known.get(split_id)) is None:
            continue
        attributes = base.attributes.get(split_id, {})
        if is_other(attributes, {} if answer.identity is None else {IDENTITY: answer.identity}):
            recreated.add(split_id)
        else:
            ends[split_id] = min(answer.end, int(attributes.get(STOP, answer.end)))
    return Look(ends=ends, recreated=frozenset(recreated))
