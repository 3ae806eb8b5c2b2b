"""Each scope is dealt as if it were alone; the limit of moves is one for all."""

from balanced_source.assigners import PerScopeAssigner, Placement, RoundRobinAssigner, place

ASSIGNER = PerScopeAssigner(RoundRobinAssigner())
EAST = [("east", "t", number) for number in range(4)]
WEST = [("west", "t", number) for number in range(4)]


def test_splits_of_another_scope_do_not_count() -> None:
    placement = Placement(parallelism=2, owners=dict.fromkeys(EAST, 0), pending=WEST)

    found = place(ASSIGNER, placement)

    assert found.keys() == set(WEST)
    assert sorted(found.values()) == [0, 0, 1, 1], "alone, west would be dealt evenly"


def test_pending_splits_of_another_scope_take_no_place() -> None:
    placement = Placement(parallelism=2, pending=[EAST[0], *WEST[:2]])

    assert place(ASSIGNER, placement) == {EAST[0]: 0, WEST[0]: 0, WEST[1]: 1}


def test_each_scope_is_balanced_within_one_limit() -> None:
    owners = dict.fromkeys([*EAST, *WEST], 0)
    free = Placement(parallelism=2, owners=owners, may_move=True)
    limited = Placement(parallelism=2, owners=owners, may_move=True, max_moves=3)

    assert sorted(s[0] for s in place(ASSIGNER, free)) == ["east", "east", "west", "west"]
    assert sorted(s[0] for s in place(ASSIGNER, limited)) == ["east", "east", "west"]
