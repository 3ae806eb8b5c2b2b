"""Questions to owner policies, as Hypothesis strategies, and answers found by trying everything."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from balanced_source.api import SplitId
from balanced_source.assigners import Placement
from balanced_source.assigners._moves import Holdings, Step, Steps, level

WEIGHTS = st.one_of(
    st.integers(0, 20).map(float),
    st.floats(0, 1e9, allow_nan=False, allow_infinity=False),
)


def split_ids(count: int) -> list[SplitId]:
    """Ids over two topics."""
    return [("c", f"t{i % 2}", i // 2) for i in range(count)]


@st.composite
def placements(
    draw: st.DrawFn,
    *,
    max_splits: int = 40,
    max_readers: int = 8,
    weighted: bool = True,
    owned: bool = True,
) -> Placement:
    """A question in which some splits have owners, and everything may move."""
    n = draw(st.integers(1, max_readers))
    ids = split_ids(draw(st.integers(0, max_splits)))
    has_owner = (
        draw(st.lists(st.booleans(), min_size=len(ids), max_size=len(ids)))
        if owned
        else [False] * len(ids)
    )
    owners = {
        s: draw(st.integers(0, n - 1))
        for s, is_owned in zip(ids, has_owner, strict=True)
        if is_owned
    }
    weights = {s: draw(WEIGHTS) for s in ids if draw(st.integers(0, 9))} if weighted else {}
    pending = [s for s in ids if s not in owners]
    return Placement(parallelism=n, owners=owners, pending=pending, may_move=True, weights=weights)


def shuffled(placement: Placement, seed: int) -> Placement:
    """The same question in another order."""
    import random

    rng = random.Random(seed)

    def mixed(table: Mapping[SplitId, float]) -> dict[SplitId, float]:
        return dict(rng.sample(list(table.items()), len(table)))

    return replace(
        placement,
        owners={s: int(o) for s, o in mixed(placement.owners).items()},
        pending=rng.sample(list(placement.pending), len(placement.pending)),
        weights=mixed(placement.weights),
    )


def loads(
    owners: Mapping[SplitId, int], weights: Mapping[SplitId, float], parallelism: int
) -> list[float]:
    """Load of each reader; a split without weight counts as the mean."""
    known = [weights[s] for s in owners if s in weights]
    mean = sum(known) / len(known) if any(known) else 1.0
    table = weights if any(known) else {}
    totals = [0.0] * parallelism
    for split_id, owner in sorted(owners.items()):
        totals[owner] += table.get(split_id, mean)
    return totals


def all_loads(weights: Sequence[float], parallelism: int) -> Iterator[list[float]]:
    """Loads of every assignment, without those that differ in the names of readers only."""

    def extend(at: int, totals: list[float], used: int) -> Iterator[list[float]]:
        if at == len(weights):
            yield totals
            return
        for reader in range(min(used + 1, parallelism)):
            changed = [*totals]
            changed[reader] += weights[at]
            yield from extend(at + 1, changed, max(used, reader + 1))

    return extend(0, [0.0] * parallelism, 0)


def optimum(weights: Sequence[float], parallelism: int) -> float:
    """The smallest largest load, by trying everything."""
    return min(max(totals) for totals in all_loads(weights, parallelism))


def fewest_moves(placement: Placement) -> int:
    """How few splits can move so that the numbers of splits per reader differ by one at most.

    By trying everything.
    """
    n, ids = placement.parallelism, [*placement.owners, *placement.pending]
    return min(
        sum(
            o != placement.owners[s]
            for s, o in zip(ids, owners, strict=True)
            if s in placement.owners
        )
        for owners in itertools.product(range(n), repeat=len(ids))
        if spread(Counter(owners), n) <= 1
    )


def spread(counts: Counter[int], parallelism: int) -> int:
    """Most minus fewest splits."""
    numbers = [counts[reader] for reader in range(parallelism)]
    return max(numbers) - min(numbers)


def levelled(held: Holdings, *, ceiling: int) -> list[Step]:
    """Let readers above the ceiling give, and return what they gave."""
    steps = Steps()
    level(held, steps, ceiling=ceiling)
    moves = zip(steps.splits, steps.owners, steps.largest, strict=True)
    return [Step(((split, owner),), largest) for split, owner, largest in moves]
