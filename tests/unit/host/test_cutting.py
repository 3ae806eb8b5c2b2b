"""Cutting hot splits: every offset is read exactly once, and no reader has more than its share."""

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from balanced_source.documents import stream_offset
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host import SplitRange, plan
from balanced_source.host.cutting import equalise, length

Shares = dict[int, list[SplitRange]]


@st.composite
def shares(draw: st.DrawFn) -> Shares:
    readers = draw(st.integers(1, 12))
    sizes = draw(
        st.lists(st.tuples(st.integers(0, readers - 1), st.integers(1, 10_000)), max_size=40)
    )
    made: Shares = {reader: [] for reader in range(readers)}
    for number, (reader, size) in enumerate(sizes):
        start = number * 7
        made[reader].append(SplitRange(split_id=("k", "t", number), start=start, end=start + size))
    return made


def offsets(given_shares: Mapping[int, Sequence[SplitRange]]) -> list[tuple[int, int, int]]:
    """Ranges of all readers, those that touch joined."""
    pieces = sorted(
        (int(r.split_id[2]), int(r.start or 0), int(r.end or 0))
        for rs in given_shares.values()
        for r in rs
    )
    joined: list[tuple[int, int, int]] = []
    for number, start, end in pieces:
        if joined and joined[-1][0] == number and joined[-1][2] == start:
            joined[-1] = (number, joined[-1][1], end)
        else:
            joined.append((number, start, end))
    return joined


@given(shares(), st.integers(1, 20_000))
def test_every_offset_is_read_exactly_once_and_no_reader_has_more_than_its_share(
    before: Shares, threshold: int
) -> None:
    after = equalise(before, max_records=threshold)

    assert offsets(after) == offsets(before)
    assert after.keys() == before.keys()
    total = sum(length(r) for rs in before.values() for r in rs)
    assert max(sum(map(length, rs)) for rs in after.values()) <= max(
        threshold, -(-total // len(before))
    )


@given(shares())
def test_few_cuts_and_one_range_of_a_split_per_reader(before: Shares) -> None:
    after = equalise(before, max_records=1)

    assert sum(map(len, after.values())) - sum(map(len, before.values())) < len(before)
    for ranges in after.values():
        assert len({r.split_id for r in ranges}) == len(ranges)
        assert all(length(r) > 0 for r in ranges)


@given(shares(), st.integers(1, 20_000))
def test_input_order_does_not_matter(before: Shares, threshold: int) -> None:
    turned = {reader: list(reversed(before[reader])) for reader in reversed(before)}

    first, second = equalise(before, max_records=threshold), equalise(turned, max_records=threshold)

    assert {r: set(x) for r, x in first.items()} == {r: set(x) for r, x in second.items()}


def test_readers_below_the_threshold_keep_what_they_own() -> None:
    before = {0: [SplitRange(split_id=("k", "t", 0), start=0, end=900)], 1: []}

    assert equalise(before, max_records=1000) == {0: tuple(before[0]), 1: ()}


def test_a_skewed_topic_is_read_evenly_by_eight_readers() -> None:
    """Zipf 1.1 on 16 partitions: whole splits leave the largest reader far above the mean."""
    sizes = [int(1_000_000 / (rank + 1) ** 1.1) for rank in range(16)]
    splits = {("k", "t", number): size for number, size in enumerate(sizes)}
    end = StreamOffset(
        epoch=1,
        parallelism=8,
        readers=tuple(range(8)),
        owners={split: number % 8 for number, split in enumerate(splits)},
        positions=splits,
        starts=dict.fromkeys(splits, 0),
        max_records_per_reader=1,
    )

    loads = [sum(map(length, p.ranges)) for p in plan(StreamOffset(), end)]

    assert max(loads) <= 1.05 * sum(sizes) / 8


def test_an_offset_keeps_what_its_plan_depends_on() -> None:
    cut = StreamOffset(epoch=1, max_records_per_reader=5)

    assert stream_offset.from_json(stream_offset.to_json(cut)) == cut


def test_a_range_has_as_many_records_as_there_are_offsets_in_it() -> None:
    lengths = {
        (3, 7): 4,
        (7, 7): 0,
        (7, 3): 0,
        ("a", "b"): 0,
        (3, "b"): 0,
        ("a", 7): 0,
        (3, None): 0,
        (None, 7): 0,
    }

    measured = {
        (start, end): length(SplitRange(split_id=("k", "t", 0), start=start, end=end))
        for start, end in lengths
    }

    assert measured == lengths


def test_ranges_whose_positions_are_texts_stay_with_their_owner() -> None:
    texts = SplitRange(split_id=("k", "t", 0), start="0001", end="9999")
    numbers = SplitRange(split_id=("k", "t", 1), start=0, end=100)

    after = equalise({0: [texts, numbers], 1: []}, max_records=1)

    assert after[0] == (texts, SplitRange(split_id=("k", "t", 1), start=0, end=50))
    assert after[1] == (SplitRange(split_id=("k", "t", 1), start=50, end=100),)
    assert equalise({0: [texts], 1: []}, max_records=1) == {0: (texts,), 1: ()}


def test_the_fullest_reader_fills_the_emptiest_one_first() -> None:
    """The owner keeps the part that begins where the split stands."""

    def piece(number: int, start: int, end: int) -> SplitRange:
        return SplitRange(split_id=("k", "t", number), start=start, end=end)

    before = {
        0: [piece(0, 0, 100), piece(1, 0, 40)],
        1: [piece(2, 0, 30)],
        2: [],
        3: [piece(3, 0, 70)],
    }

    assert equalise(before, max_records=1) == {
        0: (piece(0, 0, 40), piece(1, 0, 20)),
        1: (piece(2, 0, 30), piece(1, 20, 40), piece(3, 60, 70)),
        2: (piece(0, 40, 100),),
        3: (piece(3, 0, 60),),
    }


def test_a_range_that_fits_moves_as_a_whole() -> None:
    """A cut makes two readers open the same split."""
    one, other = (SplitRange(split_id=("k", "t", n), start=0, end=50) for n in (0, 1))

    assert equalise({0: [one, other], 1: []}, max_records=1) == {0: (one,), 1: (other,)}
