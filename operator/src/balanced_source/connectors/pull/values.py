"""What an enumerator whose readers ask for splits gets, and what it remembers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from balanced_source.api import AsyncCall, BoundedSplit, Json, SplitId

SplitT = TypeVar("SplitT", bound=BoundedSplit)


class ListSplits(AsyncCall):
    """Base of a connector's listing calls.

    The result is an iterable of all splits, at their starts.

    Attributes:
        scope: what is listed, for messages.
        round: number of the attempt; answers of older ones are ignored.
    """

    __slots__ = ()
    scope: str
    round: int


# Without slots: Python 3.11 cannot make a frozen class with slots as `Page[…](…)`.
@dataclass(frozen=True, kw_only=True)
class Page(Generic[SplitT]):
    """What one listing of a source that is listed in pages has found.

    Attributes:
        splits: new ones, at their starts.
        cursor: what the connector remembers of all listings so far. The next call gets it.
        has_more: whether the next call will find more without any change of the world.
        losses: why splits that the user may expect are not read, each as a sentence with a number.
        refusal: why nothing more is listed until someone acts; empty if there is no reason.
    """

    splits: tuple[SplitT, ...] = ()
    cursor: Json = None
    has_more: bool = False
    losses: tuple[str, ...] = ()
    refusal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Listed splits of what changed since splits with the same ids were read.

    Attributes:
        split_ids: the listed splits, also those with other ids.
        refusal: why nothing more is listed until someone acts; empty to continue without them.
        loss: see `Page.losses`.
    """

    split_ids: frozenset[SplitId]
    refusal: str = ""
    loss: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullState(Generic[SplitT]):
    """What must survive the process. Assigned splits are not here: the coordinator has them.

    Attributes:
        pending: splits that no one has, at the position where reading starts or continues.
        returned: those of them that someone had. They are given out without being asked for.
        finished: assigned splits that have been read to their end, where such splits stay assigned.
        is_listed: whether the splits were listed.
        is_doubtful: whether splits may be pending that were read already, because the state was
            lost or is an older copy.
        cursor: see `Page`; None before the first page, and for a source that is listed at once.
    """

    pending: Mapping[SplitId, SplitT] = field(default_factory=dict)
    returned: frozenset[SplitId] = frozenset()
    finished: frozenset[SplitId] = frozenset()
    is_listed: bool = False
    is_doubtful: bool = False
    cursor: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What a restart may forget.

    Attributes:
        counts: reader → splits that it asks for and did not get yet, in the order in which readers
            asked.
        hosts: reader → name of its host, for locality.
        round: number of the newest listing.
        failures: failed listings in a row.
        problem: why the splits cannot be listed.
    """

    counts: Mapping[int, int] = field(default_factory=dict)
    hosts: Mapping[int, str | None] = field(default_factory=dict)
    round: int = 0
    failures: int = 0
    problem: Exception | None = None
