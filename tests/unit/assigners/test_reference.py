"""The weighted strategy's fast paths, against code that looks at every split each time.

Assignments are stored decisions, so the results must be the same and not only as good.
"""

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from balanced_source.api import SplitId
from balanced_source.assigners._moves import Holdings, Refinement, Step
from balanced_source.assigners._weights import WeightTable, fair_ceiling, lower_bound
from support.placements import levelled

READERS = 4

weight = st.one_of(st.integers(0, 6), st.integers(0, 2**40))
splits = st.lists(st.tuples(weight, st.integers(0, READERS - 1)), min_size=1, max_size=60)


class Plain:
    """Splits, the reader of each, and the heaviest first, then by id."""

    def __init__(self, case: Sequence[tuple[int, int]]) -> None:
        self.weights = [weight for weight, _ in case]
        self.owners = [owner for _, owner in case]
        self.order = sorted(range(len(case)), key=lambda split: (-self.weights[split], split))

    def table(self) -> WeightTable:
        return WeightTable([("c", "t", n) for n in range(len(self.weights))], self.weights)

    def holdings(self) -> Holdings:
        return Holdings(self.table(), self.owners, self.loads())

    def loads(self) -> list[int]:
        return [sum(self.weights[s] for s in self.of(reader)) for reader in range(READERS)]

    def of(self, reader: int) -> list[int]:
        """The splits of a reader, the heaviest first."""
        return [split for split in self.order if self.owners[split] == reader]

    def gives(self, giver: int, ceiling: int, taken: list[int]) -> list[tuple[int, int]]:
        """What a reader above the ceiling gives; `taken` has the loads of those below it."""
        found, load = [], self.loads()[giver]
        for split in self.of(giver):
            takers = [r for r, is_taker in enumerate(self.takers(ceiling)) if is_taker]
            taker = min(takers, key=lambda reader: (taken[reader], reader), default=None)
            if taker is None or taken[taker] >= ceiling or load <= ceiling:
                break
            weight, filled = self.weights[split], taken[taker]
            is_useful = 0 < weight < min(2 * (load - ceiling), load - filled)
            if is_useful and 2 * weight <= load - filled + ceiling // 10:
                taken[taker] += weight
                found.append((split, taker))
                load -= weight
        return found

    def takers(self, ceiling: int) -> list[bool]:
        return [load < ceiling for load in self.loads()]

    def level(self, ceiling: int) -> list[Step]:
        """See `level`: what readers give, in the order in which the fullest gives next."""
        loads, taken = self.loads(), self.loads()
        givers = sorted((r for r in range(READERS) if loads[r] > ceiling), key=lambda r: -loads[r])
        given_by = {giver: self.gives(giver, ceiling, taken) for giver in givers}
        steps: list[Step] = []
        while ready := [giver for giver in givers if given_by[giver]]:
            giver = min(ready, key=lambda reader: (-loads[reader], reader))
            split, taker = given_by[giver].pop(0)
            loads[giver] -= self.weights[split]
            loads[taker] += self.weights[split]
            steps.append(Step(((split, taker),), max(loads)))
        return steps

    def best_exchange(self, fullest: int, partner: int) -> tuple[int, int, int | None] | None:
        """The best of all gifts and swaps: largest load, split given, split that comes back."""
        loads = self.loads()
        high, low = loads[fullest], loads[partner]
        results = [
            (max(high - shift, low + shift), given, back)
            for given in self.of(fullest)
            for back in (None, *self.of(partner))
            for shift in [self.weights[given] - (0 if back is None else self.weights[back])]
        ]
        best = min((result[0] for result in results), default=high)
        return next(r for r in results if r[0] == best) if best < high else None


@given(splits, st.integers(1, 2**42))
def test_levelling_gives_the_same_splits_in_the_same_order(
    case: list[tuple[int, int]], limit: int
) -> None:
    plain = Plain(case)
    for ceiling in (max(1, sum(plain.weights) // READERS), limit):
        assert levelled(plain.holdings(), ceiling=ceiling) == plain.level(ceiling)


@given(splits)
def test_the_best_exchange_is_that_of_trying_all(case: list[tuple[int, int]]) -> None:
    plain = Plain(case)
    held, loads = plain.holdings(), plain.loads()
    fullest, partner = loads.index(max(loads)), loads.index(min(loads))
    search = Refinement(held, ceiling=2**60, goal=0)

    found = search._exchange(fullest, partner)

    expected = None if fullest == partner else plain.best_exchange(fullest, partner)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        given_weight = held.weights[found[1]]
        back_weight = 0 if found[2] is None else held.weights[found[2]]
        shift = given_weight - back_weight
        assert found[0] == expected[0] == max(loads[fullest] - shift, loads[partner] + shift)


@given(splits, st.lists(st.integers(0, 2**42), min_size=1, max_size=READERS))
def test_each_split_is_dealt_to_the_least_loaded_reader(
    case: list[tuple[int, int]], loads: list[int]
) -> None:
    plain, now, expected = Plain(case), list(loads), dict[int, int]()
    for split in plain.order:
        expected[split] = min(range(len(now)), key=lambda reader: (now[reader], reader))
        now[expected[split]] += plain.weights[split]

    assert plain.table().deal(range(len(case)), loads) == expected


@given(st.lists(weight, min_size=1, max_size=60), st.integers(1, 8))
def test_the_lower_bound_looks_at_every_group_of_heavy_splits(weights: list[int], n: int) -> None:
    falling = sorted(weights, reverse=True)
    groups = [
        sum(falling[k * n - k : k * n + 1]) for k in range(len(weights)) if k * n < len(falling)
    ]

    assert lower_bound(weights, n) == max(sum(weights) / n, *groups)
    assert fair_ceiling(weights, 1) == max(1, round(lower_bound(weights, 1)))


@given(st.dictionaries(st.integers(0, 99), st.floats(0, 1e12), min_size=1))
def test_the_order_of_loads_does_not_matter(loads: Mapping[int, float]) -> None:
    ids: list[SplitId] = [("c", "t", number) for number in sorted(loads)]
    half = len(ids) // 2
    for names in (ids, [*ids[half:], *ids[:half]], ids[::-1]):
        in_order: dict[SplitId, float] = {s: loads[int(s[2])] for s in ids}
        backwards = dict(reversed(in_order.items()))
        found = [WeightTable.of(names, weights) for weights in (in_order, backwards)]
        assert found[0].weights == found[1].weights
        assert found[0].order == found[1].order
