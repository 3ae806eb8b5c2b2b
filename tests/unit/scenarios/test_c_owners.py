"""Group C: who owns a split. Defects X1, X2, X3 and X9.

C1 to C5 record upstream's rule (the next owner is the number of known splits modulo n). It drifts
away from balance, so ours is the least loaded reader; each test names upstream's outcome.
"""

import itertools
import random
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balanced_source import assigners
from balanced_source.api import SplitId
from balanced_source.assigners import HashAssigner, Placement, RoundRobinAssigner
from balanced_source.errors import ContractViolationError
from support.stage import Stage, splits
from support.world import kafka_source

RETURNING = [("c", "t", number) for number in (0, 1, 2, 5, 9)]


def owned(*loads: int) -> dict[SplitId, int]:
    """As many splits per reader as given."""
    return {
        ("c", f"of-{reader}", number): reader
        for reader, load in enumerate(loads)
        for number in range(load)
    }


def dealt(
    owners: dict[SplitId, int], pending: Iterable[SplitId], n: int, *, may_move: bool = False
) -> dict[SplitId, int]:
    """Who owns what afterwards."""
    question = Placement(parallelism=n, owners=owners, pending=list(pending), may_move=may_move)
    return {**owners, **assigners.place(RoundRobinAssigner(), question)}


def loads(owners: dict[SplitId, int], n: int) -> list[int]:
    counts = Counter(owners.values())
    return [counts[reader] for reader in range(n)]


@pytest.mark.scenario("C1")
def test_c1_growth_fills_up_the_emptiest_reader() -> None:
    """Of four splits on three readers (2, 1, 1) the next two go to 1 and 2.

    When one vanished from 0, the next is 0's.

    Upstream: 1 and 2 as well, then 0 because three are known.
    """
    owners = dealt({}, splits("t", 4), 3)
    assert [dealt(owners, splits("u", 2), 3)[split] for split in splits("u", 2)] == [1, 2]

    del owners["c", "t", 0], owners["c", "t", 3]
    assert dealt(owners, splits("u", 1), 3)["c", "u", 0] == 0


@pytest.mark.scenario("C2")
def test_c2_a_split_that_comes_back_goes_to_its_reader() -> None:
    """The reader that had it gets it again."""
    stage = Stage(readers=4).topic("t", 8).running()
    mine = stage.given(2)

    stage.fails(2).registers(2, holding={})

    assert stage.given(2) == mine


@pytest.mark.scenario("C3", "X2")
@pytest.mark.parametrize(("splits_before", "readers"), [(12, (6, 4)), (5, (5, 3)), (8, (8, 4))])
def test_c3_splits_of_removed_readers_are_spread(
    splits_before: int, readers: tuple[int, int]
) -> None:
    """They go one at a time to whoever has fewest. Upstream: all to the reader ``known mod n``."""
    stage = Stage(readers=readers[0], hosts=1).topic("t", splits_before).running()
    stay = {s: o for s, o in stage.owners.items() if o < readers[1]}

    stage.rescales(readers[1])

    assert stage.spread <= 1
    assert {s: stage.owners[s] for s in stay} == stay


@pytest.mark.scenario("C4", "X3")
def test_c4_new_splits_fill_the_holes() -> None:
    """3,3,3,2,2 loses one each of readers 2, 3, 4 without a move; the next two go to 3 and 4.

    Upstream: to 0 and 1, because ten are known.
    """
    owners = owned(3, 3, 2, 1, 1)

    after = dealt(owners, splits("u", 2), 5)

    assert [after[split] for split in splits("u", 2)] == [3, 4]
    assert {s: after[s] for s in owners} == owners


@pytest.mark.scenario("X3")
def test_x3_after_a_shrink_the_load_decides_and_not_a_count() -> None:
    """Left with 3,3,2,0,0, the next three go to the idle readers.

    Upstream: to 3, 4 and 0, which ends at 4,3,2,1,1.
    """
    assert loads(dealt(owned(3, 3, 2, 0, 0), splits("u", 3), 5), 5) == [3, 3, 2, 2, 1]


@pytest.mark.scenario("C5")
def test_c5_without_readers_there_is_an_error() -> None:
    """It says what parallelism must be."""
    with pytest.raises(ContractViolationError, match="parallelism must be at least 1"):
        dealt({}, splits("t", 1), 0)


@pytest.mark.scenario("C6")
def test_c6_a_full_recovery_deals_over_all_readers() -> None:
    """Seven reported splits on three readers are 3, 2, 2; the next new split gets reader 1."""
    stage = Stage(readers=3).topic("t", 7).state_lost().operator_starts()
    stage.registers(0, holding=dict.fromkeys(splits("t", 7), 0)).registers(1).registers(
        2
    ).discovers()
    assert stage.loads == [3, 2, 2]

    stage.topic("u", 1).looks_again()
    assert stage.owners["c", "u", 0] == 1


@pytest.mark.scenario("C7")
def test_c7_returning_splits_go_to_the_emptier_reader() -> None:
    """Four on reader 0: two that return go to reader 1, none moves.

    The one after them goes to 1, who still has fewer.

    Upstream's load-aware rule ends the same way for the two; its next one goes to 0.
    """
    owners = owned(4, 0)
    after = dealt(owners, splits("t", 2), 2)
    assert loads(after, 2) == [4, 2]
    assert {s: after[s] for s in owners} == owners
    assert dealt(after, splits("u", 1), 2)["c", "u", 0] == 1


@pytest.mark.scenario("C8")
def test_c8_asking_again_gives_the_same_owner() -> None:
    """A policy has no memory.

    A returning split asked for twice gets one owner, and pending ones are no load.
    """
    owners = owned(1, 0, 0)
    assert [dealt(owners, splits("t", 1), 3)["c", "t", 0] for _ in range(3)] == [1, 1, 1]

    assert dealt(dealt(owners, splits("t", 1), 3), splits("u", 1), 3)["c", "u", 0] == 2


@pytest.mark.scenario("C11")
@pytest.mark.parametrize(
    ("owners", "pending", "n", "message"),
    [
        ({("c", "t", 0): 0}, [("c", "t", 0)], 2, "pending and owned at once"),
        ({("c", "t", 0): 2}, [], 2, r"owned by 2, outside \[0, 2\)"),
        ({}, [("c", "t", 0)], 0, "at least 1"),
    ],
)
def test_c11_contradictions_are_errors(
    owners: dict[SplitId, int], pending: list[SplitId], n: int, message: str
) -> None:
    """A returning split that is active, an owner that is no reader, no reader at all.

    Each says what is wrong.
    """
    with pytest.raises(ContractViolationError, match=message):
        dealt(owners, pending, n)


@pytest.mark.scenario("C12")
@given(
    n=st.integers(1, 8),
    active=st.lists(st.integers(0, 7), max_size=17),
    order=st.randoms(use_true_random=False),
)
def test_c12_the_result_depends_on_the_loads_alone(
    n: int, active: list[int], order: random.Random
) -> None:
    """Any order of the input, any skew.

    No one moves, the fullest ends as low as it can, who had more got nothing.
    """
    owners = {("c", "a", number): reader % n for number, reader in enumerate(active)}
    before = loads(owners, n)

    after = dealt(owners, RETURNING, n)

    shuffled = [*RETURNING]
    order.shuffle(shuffled)
    assert dealt(dict(reversed(owners.items())), shuffled, n) == after
    assert {s: after[s] for s in owners} == owners
    assert max(loads(after, n)) == max([*before, -(-(len(owners) + len(RETURNING)) // n)])
    got = Counter(after[split] for split in RETURNING)
    least = min(loads(after, n))
    assert all(got[reader] == 0 for reader in range(n) if before[reader] > least + 1)


@pytest.mark.hosts_apart
@pytest.mark.scenario("X1")
def test_x1_restored_splits_without_an_owner_are_spread() -> None:
    """Eight splits found while no reader could take them get owners one by one after the restore.

    Upstream: all eight get the same, because it counts known splits and these are known already.
    """
    stage = Stage(readers=4).topic("t", 4).running()
    for host in range(4):
        stage.fails(host)
    stage.registers(0).topic("u", 8).looks_again()
    assert len(stage.pending) == 8

    stage.operator_starts().registers(1).registers(2).registers(3).discovers()

    assert stage.loads == [3, 3, 3, 3]


@pytest.mark.scenario("X9")
@pytest.mark.parametrize(("n", "used"), [(31, 2), (62, 4)])
def test_x9_hash_warns_where_it_collapses(n: int, used: int) -> None:
    """At multiples of 31 a hundred topics start on a handful of readers.

    The policy says so, and only there.
    """
    first_partitions = [("c", f"topic-{number}", 0) for number in range(100)]
    question = Placement(parallelism=n, pending=first_partitions)

    assert len(set(assigners.place(HashAssigner(), question).values())) == used
    warning = HashAssigner().warning(n)
    assert warning is not None
    assert "multiple of 31" in warning.message
    assert HashAssigner().warning(n - 1) is HashAssigner().warning(n + 1) is None
    assert loads(assigners.place(RoundRobinAssigner(), question), n) == loads(
        dealt({}, first_partitions, n), n
    )


def test_every_order_of_registration_gives_the_same_owners() -> None:
    """Hosts that come in any order end with the same splits (rule 5)."""
    results = set()
    for order in itertools.permutations(range(3)):
        stage = (
            Stage(readers=3, source=kafka_source("c")).topic("t", 7).state_lost().operator_starts()
        )
        for host in order:
            stage.registers(host, holding=dict.fromkeys(splits("t", 7), 5) if host == 1 else {})
        results.add(tuple(sorted(stage.discovers().owners.items())))
    assert len(results) == 1
