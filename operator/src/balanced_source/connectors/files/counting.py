"""Counters of the files that are not known by name any more. Pure.

Files are counted by `BUCKETS` parts of their names. A counter that grows between two whole
listings tells that a file came too late. A listing may lack files for a while, such as those of a
volume that is not mounted. So what a counter lost is remembered, and is no late file when it comes
back.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Final, NamedTuple

BUCKETS: Final = 256
"""Counters of files before the horizon."""

LOSSES: Final = 4
"""Losses that each counter remembers; older ones are remembered as one."""

_CLEAR: Final = 4
"""So many counters that are what they were before, for each of which only a part is back, tell that
this is a return."""

_SPREAD: Final = 0x9E3779B97F4A7C15
"""Multiplier of hashes: odd, with bits all over, so that products tell pairs apart."""


class Counter(NamedTuple):
    """The files of one bucket: how many, and the exclusive or of their hashes."""

    files: int = 0
    digest: int = 0


_NONE: Final = Counter()


class Compared(NamedTuple):
    """What two whole listings tell.

    Attributes:
        late: files that came between them, at least.
        lost: bucket → what its counter lost and did not get back, the newest last.
    """

    late: int
    lost: dict[int, tuple[Counter, ...]]


def count(counters: dict[int, Counter], name: int, state: int) -> None:
    """Add a file to the counter of its bucket.

    Args:
        counters: bucket → counter.
        name: hash of the file's path.
        state: hash of its identity.
    """
    files, former = counters.get(name % BUCKETS, _NONE)
    counters[name % BUCKETS] = Counter(files + 1, former ^ _mixed(name, state))


def added(counters: Mapping[int, Counter], more: Mapping[int, Counter]) -> Mapping[int, Counter]:
    """Return counters with files of others added."""
    sums = {bucket: _sum((counters.get(bucket, _NONE), one)) for bucket, one in more.items()}
    return {**counters, **sums}


def compare(
    former: Mapping[int, Counter],
    now: Mapping[int, Counter],
    lost: Mapping[int, Sequence[Counter]],
) -> Compared:
    """Return how many files came, at least, and what the counters have lost by now.

    Some may hide behind others of their bucket that vanished between the same two listings.

    Args:
        former: counters after the last whole listing.
        now: counters of the same files as this listing shows them.
        lost: what the counters had lost before.
    """
    returns, left, unclear = 0, dict[int, tuple[Counter, ...]](), dict[int, Counter]()
    for bucket in {*former, *now, *lost}:
        known, here = former.get(bucket, _NONE), now.get(bucket, _NONE)
        change = Counter(here.files - known.files, here.digest ^ known.digest)
        losses = tuple(lost.get(bucket, ()))
        if change.files < 0:
            losses = _with(losses, Counter(-change.files, change.digest))
        elif change != _NONE:
            back = _back(losses, change)
            returns += bool(back)
            losses = tuple(loss for loss in losses if loss not in back)
            if not back:
                unclear[bucket] = change
        if losses:
            left[bucket] = losses
    return _judged(returns, left, unclear)


def _judged(
    returns: int, left: dict[int, tuple[Counter, ...]], unclear: Mapping[int, Counter]
) -> Compared:
    """Decide about counters that grew by something else than what they had lost."""
    away = {bucket: _sum(left.get(bucket, ())) for bucket in unclear}
    parts = {b: change for b, change in unclear.items() if 0 < change.files < away[b].files}
    # A volume is there again, without a few files that were deleted while it was away.
    if returns > _CLEAR * len(parts):
        left.update(
            (b, (Counter(away[b].files - part.files, away[b].digest ^ part.digest),))
            for b, part in parts.items()
        )
        unclear = {bucket: change for bucket, change in unclear.items() if bucket not in parts}
    # Some of what came may be back, but which cannot be told; at least one is late. The same number
    # with another digest: one came, and another one vanished.
    late = sum(max(1, change.files - away[bucket].files) for bucket, change in unclear.items())
    return Compared(late, left)


def with_loss(
    lost: Mapping[int, tuple[Counter, ...]], loss: Mapping[int, Counter]
) -> Mapping[int, tuple[Counter, ...]]:
    """Return losses with one more in some buckets."""
    return {**lost, **{bucket: _with(lost.get(bucket, ()), one) for bucket, one in loss.items()}}


def _with(losses: tuple[Counter, ...], loss: Counter) -> tuple[Counter, ...]:
    if len(losses) >= LOSSES:
        losses = (_sum(losses[:2]), *losses[2:])
    return (*losses, loss)


def _back(losses: Sequence[Counter], change: Counter) -> Sequence[Counter]:
    """Return the losses that a change is the return of; empty if it is not."""
    for size in range(1, len(losses) + 1):
        for some in combinations(losses, size):
            if _sum(some) == change:
                return some
    return ()


def _sum(counters: Iterable[Counter]) -> Counter:
    files = total = 0
    for counter in counters:
        files, total = files + counter.files, total ^ counter.digest
    return Counter(files, total)


def to_json(counters: Mapping[int, Counter]) -> Any:
    """Return counters as JSON; equal ones give equal JSON."""
    return [[bucket, c.files, c.digest] for bucket, c in sorted(counters.items())]


def from_json(data: Any) -> dict[int, Counter]:
    """Inverse of `to_json`.

    Raises:
        TypeError, ValueError: not of that form.
    """
    return {int(bucket): Counter(int(files), int(mark)) for bucket, files, mark in data}


def losses_to_json(lost: Mapping[int, Sequence[Counter]]) -> Any:
    """Return losses as JSON; equal ones give equal JSON."""
    return [
        [bucket, *([loss.files, loss.digest] for loss in losses)]
        for bucket, losses in sorted(lost.items())
    ]


def losses_from_json(data: Any) -> dict[int, tuple[Counter, ...]]:
    """Inverse of `losses_to_json`.

    Raises:
        TypeError, ValueError: not of that form.
    """
    return {
        int(bucket): tuple(Counter(int(files), int(mark)) for files, mark in losses)
        for bucket, *losses in data
    }


def _mixed(name: int, state: int) -> int:
    return (name * _SPREAD + state) % 2**64


def digest(text: str) -> int:
    """Return a hash of a text: 64 bits, the same in each process."""
    return int.from_bytes(
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    )
