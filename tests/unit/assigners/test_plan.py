"""A plan tells what would move, and changes nothing."""

from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.api import RebalanceCause, RebalanceMode, RebalancePolicy
from balanced_source.assigners import (
    Layout,
    LoadAwareAssigner,
    Placement,
    RoundRobinAssigner,
    Wish,
    place,
    plan,
)
from support.placements import placements, split_ids

IDS = split_ids(8)
FOUR = Layout(parallelism=4, owners={s: i % 4 for i, s in enumerate(IDS)})


def wish(parallelism: int = 4, *causes: RebalanceCause, **changes: object) -> Wish:
    values = {"assigner": RoundRobinAssigner(), "causes": causes, **changes}
    return Wish(parallelism=parallelism, **values)  # type: ignore[arg-type]


def test_a_plan_of_a_rescale_names_moves_and_balance() -> None:
    found = plan(FOUR, wish(8, RebalanceCause.RESCALE))

    assert len(found.moves) == 4
    assert {move.before for move in found.moves} == {0, 1, 2, 3}
    assert {move.after for move in found.moves} == {4, 5, 6, 7}
    assert (found.before.splits, found.after.splits) == ((2,) * 4, (1,) * 8)
    assert (found.before.load, found.before.imbalance, found.after.imbalance) == ((), 1.0, 1.0)


def test_splits_of_removed_readers_move_in_any_mode() -> None:
    manual = RebalancePolicy(mode=RebalanceMode.MANUAL)
    found = plan(FOUR, wish(3, RebalanceCause.RESCALE, policy=manual))

    assert [move.before for move in found.moves] == [3, 3]
    assert max(found.owners.values()) == 2


def test_a_split_that_is_not_wanted_gets_no_reader_although_it_waits_for_one() -> None:
    found = plan(
        Layout(parallelism=4, owners={IDS[0]: 3}, pending=IDS[1:3]), wish(unwanted=IDS[1:2])
    )

    assert found.owners.keys() == {IDS[0], IDS[2]}
    assert found.dropped == (IDS[1],)


def test_without_a_cause_only_pending_splits_get_a_reader() -> None:
    found = plan(Layout(parallelism=4, owners={IDS[0]: 3}, pending=IDS[1:3]), wish())

    assert {(move.split_id, move.before) for move in found.moves} == {
        (IDS[1], None),
        (IDS[2], None),
    }


def test_unsubscribed_splits_are_dropped() -> None:
    found = plan(FOUR, wish(unwanted=IDS[:2]))

    assert found.dropped == tuple(IDS[:2])
    assert found.owners.keys() == set(IDS[2:])
    assert found.moves == ()


def test_loads_are_shown_with_unknown_ones_at_the_mean() -> None:
    loads = {IDS[0]: 9.0, IDS[1]: 1.0}
    current = Layout(parallelism=2, owners={IDS[0]: 0, IDS[1]: 0, IDS[2]: 1}, loads=loads)
    found = plan(current, wish(2, RebalanceCause.REQUESTED, assigner=LoadAwareAssigner()))

    assert found.before.load == (10.0, 5.0)
    assert found.after.load == (9.0, 6.0)
    assert found.after.imbalance < found.before.imbalance


def test_limits_hold() -> None:
    crowded = Layout(parallelism=4, owners=dict.fromkeys(IDS, 0))
    policy = RebalancePolicy(max_moves=2)

    assert len(plan(crowded, wish(4, RebalanceCause.REQUESTED, policy=policy)).moves) == 2
    assert len(plan(crowded, wish(5, RebalanceCause.RESCALE, policy=policy)).moves) > 2
    both = (RebalanceCause.REQUESTED, RebalanceCause.RESCALE)
    assert len(plan(crowded, wish(4, *both, policy=policy)).moves) == 6


def test_a_cause_that_the_policy_does_not_allow_moves_nothing() -> None:
    manual = RebalancePolicy(mode=RebalanceMode.MANUAL)

    assert plan(FOUR, wish(8, RebalanceCause.RESCALE, policy=manual)).moves == ()
    assert len(plan(FOUR, wish(8, RebalanceCause.REQUESTED, policy=manual)).moves) == 4


def test_moves_and_dropped_splits_are_in_the_order_of_their_ids() -> None:
    backwards = dict(list(FOUR.owners.items())[::-1])
    gone = Layout(parallelism=4, owners=backwards)
    moved = plan(Layout(parallelism=4, pending=IDS[::-1]), wish()).moves

    assert plan(gone, wish(unwanted=frozenset(IDS))).dropped == tuple(sorted(IDS))
    assert [move.split_id for move in moved] == sorted(IDS)


@settings(max_examples=100, deadline=None)
@given(placements(), st.integers(1, 8))
def test_it_is_what_the_policy_does(placement: Placement, parallelism: int) -> None:
    current = Layout(
        parallelism=placement.parallelism,
        owners=placement.owners,
        pending=placement.pending,
        loads=placement.weights,
    )
    found = plan(current, wish(parallelism, RebalanceCause.RESCALE, assigner=LoadAwareAssigner()))

    kept = {s: o for s, o in placement.owners.items() if o < parallelism}
    pending = [s for s in (*placement.owners, *placement.pending) if s not in kept]
    question = Placement(
        parallelism=parallelism,
        owners=kept,
        pending=pending,
        may_move=True,
        weights=placement.weights,
    )
    assert found.owners == {**kept, **place(LoadAwareAssigner(), question)}
    assert sum(found.after.splits) == len(found.owners)
