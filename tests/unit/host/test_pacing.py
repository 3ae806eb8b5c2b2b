"""Shares by time: a slow reader does not keep the others waiting, and nothing is left forever."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from balanced_source.api import SplitId
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.pacing import TOLERANCE, WAITING, Pace
from balanced_source.host.pacing import paced as paced_with

AskedFor = Callable[[Collection[SplitId]], Collection[SplitId] | None]

Held = Mapping[SplitId, tuple[int, int]]
"""Split → its reader and where it stands."""


def block(number: int) -> SplitId:
    return ("files", "a", number)


def base(held: Held) -> StreamOffset:
    return StreamOffset(
        epoch=1,
        parallelism=len(SPEEDS),
        readers=tuple(SPEEDS),
        owners={s: reader for s, (reader, _) in held.items()},
        positions={s: at for s, (_, at) in held.items()},
    )


def pace(
    held: Held,
    positions: Mapping[SplitId, int],
    speeds: Mapping[int, float],
    *,
    no_more: Collection[int] = (),
    may_cut: bool = True,
    asked_for: AskedFor = lambda _: None,
) -> Pace:
    return paced_with(
        base(held),
        positions,
        speeds,
        no_more_splits=no_more,
        asked_for=asked_for,
        may_cut=lambda _: may_cut,
    )


HELD: Held = {block(n): (n // 2, 0) for n in range(8)}
"""Four readers with two blocks each."""
WHOLE = dict.fromkeys(HELD, 100)
SPEEDS = {0: 100.0, 1: 100.0, 2: 100.0, 3: 10.0}


def test_a_slow_reader_reads_what_it_can_while_the_others_read_theirs() -> None:
    expected = Pace({**WHOLE, block(6): 20, block(7): 0})

    assert pace(HELD, WHOLE, SPEEDS) == expected
    assert pace(dict(reversed(HELD.items())), WHOLE, SPEEDS) == expected, "in the order of ids"


def test_it_reads_the_block_that_it_has_begun_first() -> None:
    found = pace({**HELD, block(7): (3, 20)}, WHOLE, SPEEDS).positions

    assert (found[block(6)], found[block(7)]) == (0, 40)


def test_a_block_that_cannot_be_cut_is_read_as_a_whole() -> None:
    found = pace(HELD, WHOLE, SPEEDS, may_cut=False)

    assert found == Pace({**WHOLE, block(6): 100, block(7): 0})


def test_nothing_changes_while_the_speed_of_a_reader_is_unknown() -> None:
    assert pace(HELD, WHOLE, {0: 100.0, 3: 10.0}) == Pace(WHOLE)


def test_readers_that_are_about_as_fast_as_the_others_read_everything() -> None:
    assert pace(HELD, WHOLE, {**SPEEDS, 3: 100.0 / TOLERANCE + 1}) == Pace(WHOLE)


ALONE: Held = {block(6): (3, 0), block(7): (3, 0)}
"""Only the slow reader has something to read."""


def test_readers_that_wait_for_their_next_splits_do_not_wait_long() -> None:
    found = pace(ALONE, dict.fromkeys(ALONE, 100), SPEEDS).positions

    assert sum(found.values()) == WAITING * SPEEDS[3]


def test_at_the_end_idle_readers_take_parts_of_the_remaining_splits() -> None:
    reached = dict.fromkeys(ALONE, 100)

    assert pace(ALONE, reached, SPEEDS, no_more=range(4)) == Pace(reached, cut_above=50)
    assert pace(ALONE, reached, SPEEDS, no_more=range(4), may_cut=False) == Pace(reached)
    short = dict.fromkeys(ALONE, int(WAITING * SPEEDS[3]) // 2)
    assert pace(ALONE, short, SPEEDS, no_more=range(4)) == Pace(short), "not worth a cut"


def test_idle_readers_help_one_reader_although_another_one_is_nearly_done() -> None:
    held: Held = {block(0): (0, 0), block(6): (3, 0)}
    reached = {block(0): 10, block(6): 100}

    assert pace(held, reached, SPEEDS, no_more=range(4)) == Pace(reached, cut_above=28)


def test_splits_that_no_one_asked_for_are_read_as_far_as_they_can_be() -> None:
    """Partitions that follow files: order holds in each, so no other reader takes a part of one."""
    reached = dict.fromkeys(ALONE, 100)

    for no_more in (range(4), ()):
        assert pace(ALONE, reached, SPEEDS, no_more=no_more, asked_for=_none) == Pace(reached)
        assert pace(HELD, WHOLE, SPEEDS, no_more=no_more, asked_for=_none) == Pace(WHOLE)


def test_a_split_that_was_asked_for_is_not_cut_beside_one_that_was_not() -> None:
    reached = dict.fromkeys(ALONE, 100)

    found = pace(ALONE, reached, SPEEDS, no_more=range(4), asked_for=lambda _: [block(6)])

    assert found == Pace(reached)


def _none(_: Collection[SplitId]) -> Collection[SplitId]:
    return ()


@given(
    held=st.dictionaries(
        st.builds(block, st.integers(0, 20)),
        st.tuples(st.integers(0, 3), st.integers(0, 50)),
        min_size=1,
    ),
    speeds=st.dictionaries(st.integers(0, 3), st.floats(0, 1e6)),
    no_more=st.frozensets(st.integers(0, 3)),
    cuttable=st.frozensets(st.builds(block, st.integers(0, 20))),
    data=st.data(),
)
def test_no_split_goes_back_or_too_far_and_each_reader_progresses(
    held: Held,
    speeds: dict[int, float],
    no_more: frozenset[int],
    cuttable: frozenset[SplitId],
    data: st.DataObject,
) -> None:
    reach = {s: at + data.draw(st.integers(0, 100)) for s, (_, at) in held.items()}

    found = paced_with(
        base(held),
        reach,
        speeds,
        no_more_splits=no_more,
        asked_for=lambda splits: splits,
        may_cut=lambda s: s in cuttable,
    ).positions

    assert found.keys() == reach.keys()
    assert all(held[s][1] <= found[s] <= reach[s] for s in held)
    assert all(found[s] in (held[s][1], reach[s]) for s in held if s not in cuttable)
    for reader in {reader for reader, _ in held.values()}:
        own = [s for s, (r, _) in held.items() if r == reader]
        if any(reach[s] > held[s][1] for s in own):
            assert any(found[s] > held[s][1] for s in own), "a reader must not stand still"


def test_the_middle_one_of_three_readers_sets_the_time_in_any_order() -> None:
    """Not the fastest reader, and not the slowest one that was listed in the middle."""
    blocks = {block(reader): (reader, 0) for reader in range(3)}
    offset = replace(base(blocks), readers=(0, 1, 2), parallelism=3)

    pace = paced_with(
        offset,
        dict.fromkeys(blocks, 100),
        {0: 10.0, 1: 20.0, 2: 1.0},
        no_more_splits=frozenset(),
        asked_for=lambda _: None,
        may_cut=lambda _: True,
    )

    assert pace == Pace({block(0): 100, block(1): 100, block(2): 10})


def test_a_split_whose_end_is_unknown_does_not_count() -> None:
    held: Held = {block(0): (0, 0), block(1): (1, 0)}

    assert pace(held, {block(0): 100}, {0: 100.0, 1: 100.0}).positions == {block(0): 100}


def test_only_what_is_left_of_a_split_counts_as_its_extent() -> None:
    """Blocks of files begin far behind the start of their file."""
    held: Held = {block(n): (n // 2, 10_000) for n in range(8)}
    whole = dict.fromkeys(held, 10_100)

    found = pace(held, whole, SPEEDS)

    assert found.cut_above is None
    assert {s: p - 10_000 for s, p in found.positions.items()} == pace(
        HELD, WHOLE, SPEEDS
    ).positions


def test_the_surplus_of_a_last_reader_is_shared_by_all() -> None:
    """Reader 3 reads on for a long time, and no split follows for the others."""
    held: Held = {block(0): (3, 10_000)}

    found = pace(held, {block(0): 10_400}, SPEEDS, no_more=tuple(SPEEDS))

    assert found == Pace({block(0): 10_400}, 100)
    assert pace(held, {block(0): 10_400}, SPEEDS, no_more=tuple(SPEEDS), may_cut=False) == Pace(
        {block(0): 10_400}
    )
