"""The cursor of files against a model that remembers everything."""

import base64
import json
from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.connectors.files import Cursor, File, FilesSource, Format, take
from balanced_source.connectors.files import cursor as module
from balanced_source.connectors.files.counting import Counter
from balanced_source.connectors.files.cursor import Extent, Seen
from balanced_source.connectors.files.sifting import Nearest
from balanced_source.errors import CorruptDocumentError

SECOND = 1_000_000_000
LATE = 10


def file(name: str, at: int, size: int = 1) -> File:
    return File(at * SECOND, f"/data/{name}", size)


def after(cursor: Cursor) -> Cursor:
    """As it is read back by the next process."""
    return Cursor.from_json(json.loads(json.dumps(cursor.to_json())))


def taken_all(
    cursor: Cursor,
    listed: Iterable[File],
    *,
    limit: int = 100,
    ends: bool = False,
    names_grow: bool = False,
) -> tuple[list[File], Cursor]:
    """Take pages as the connector does.

    From what is left of the listing before, if there is enough.
    """
    files, found, rest = list(listed), list[File](), tuple[File, ...]()
    while True:
        floor = cursor.floor if names_grow else ""
        extent = Extent.REST if rest else Extent.ABOVE_FLOOR if floor else Extent.WHOLE
        shown = rest or [one for one in files if one.path > floor]
        page = take(cursor, shown, limit=limit, late=LATE, ends=ends, extent=extent)
        found, rest, cursor = [*found, *page.files], page.rest, after(page.cursor)
        if not page.has_more:
            return found, cursor


Arrival = st.tuples(st.integers(0, 6), st.integers(0, LATE - 1), st.integers(0, 5))


@settings(max_examples=100, deadline=None)
@given(
    rounds=st.lists(st.lists(Arrival, max_size=8), min_size=1, max_size=8),
    limit=st.integers(1, 5),
)
def test_within_the_window_no_file_is_lost_or_read_twice(
    rounds: list[list[tuple[int, int, int]]], limit: int
) -> None:
    """Files come with equal times, and later than newer ones, but always within the window."""
    there: dict[str, File] = {}
    read: list[str] = []
    cursor, clock = Cursor(), 100
    for number, arrivals in enumerate(rounds):
        newest = clock
        for index, (step, delay, name) in enumerate(arrivals):
            newest = max(newest, clock + step)
            made = file(f"{name}-{number}-{index}", max(0, min(clock + step, newest) - delay))
            there[made.path] = made
        oldest_allowed = newest
        clock = oldest_allowed
        found, cursor = taken_all(cursor, there.values(), limit=limit)
        read += [one.path for one in found]

    assert sorted(read) == sorted(there)
    assert (cursor.late, cursor.changed) == (0, 0)


@settings(max_examples=100, deadline=None)
@given(
    times=st.lists(st.integers(0, 200), min_size=1, max_size=40, unique=True),
    late_at=st.lists(st.integers(0, 200), max_size=5),
    limit=st.integers(1, 7),
)
def test_files_neither_read_nor_counted_do_not_exist(
    times: list[int], late_at: list[int], limit: int
) -> None:
    """Outside the window a file is not read, and is counted.

    In the window it is read and not counted.
    """
    there = [file(f"first-{at}", at) for at in times]
    first, cursor = taken_all(Cursor(), there, limit=limit)
    assert sorted(first) == sorted(there)
    late = [file(f"late-{index}-{at}", at) for index, at in enumerate(late_at)]

    second, cursor = taken_all(cursor, [*there, *late], limit=limit)
    third, cursor = taken_all(cursor, [*there, *late], limit=limit)

    assert len(second) + cursor.late == len(late)
    assert set(second) <= set(late)
    assert third == []
    safe = max(times) - LATE
    assert {one for one in late if one.modified >= safe * SECOND} <= set(second)


def test_a_late_file_is_counted_even_if_the_page_before_was_cut() -> None:
    """New files that wait for the next page are never passed by the horizon."""
    _, cursor = taken_all(Cursor(), [file("newest", 100), file("near", 95)])
    late = [file(f"{at}", at) for at in range(91, 100)]

    found, cursor = taken_all(cursor, [file("newest", 100), file("near", 95), *late], limit=2)

    assert found == late
    assert cursor.late == 0


@settings(max_examples=50, deadline=None)
@given(
    rounds=st.lists(st.lists(st.integers(0, 60), max_size=12, unique=True), max_size=4),
    limit=st.integers(1, 5),
    random=st.randoms(use_true_random=False),
)
def test_the_order_of_a_listing_does_not_matter(
    rounds: list[list[int]], limit: int, random: Random
) -> None:
    """Stores list by name, by time or in no order."""
    there: dict[str, File] = {}
    cursor = Cursor()
    for times in rounds:
        there |= {str(at): file(str(at), at, size=random.randint(1, 2)) for at in times}
        listed = sorted(there.values())
        shuffled = random.sample(listed, len(listed))

        page = take(cursor, shuffled, limit=limit, late=LATE, ends=False)

        assert page == take(cursor, listed, limit=limit, late=LATE, ends=False)
        cursor = page.cursor


@settings(max_examples=100, deadline=None)
@given(
    steps=st.lists(st.lists(st.integers(0, 4), max_size=30), min_size=1, max_size=8),
    limit=st.integers(1, 5),
)
def test_where_names_grow_no_file_is_lost_although_few_are_listed(
    steps: list[list[int]], limit: int
) -> None:
    """Names grow with time; files of equal times have any order."""
    there: list[File] = []
    read: list[File] = []
    cursor, clock = Cursor(), 100
    for number, arrivals in enumerate(steps):
        for index, step in enumerate(arrivals):
            clock += step
            there.append(file(f"{clock:05}-{number}-{index:03}", clock))
        found, cursor = taken_all(cursor, there, limit=limit, names_grow=True)
        read += found

    assert sorted(read) == sorted(there)
    assert taken_all(replace(cursor, floor=""), there)[0] == []
    assert (cursor.late, cursor.changed) == (0, 0)


def test_where_names_grow_the_floor_follows_the_window() -> None:
    files = [file(f"{at:05}", at) for at in range(1000)]

    _, cursor = taken_all(Cursor(), files, names_grow=True)
    shown = [one for one in files if one.path > cursor.floor]

    assert len(shown) <= 20 * LATE, "a few times what came within the window"
    found, cursor = taken_all(cursor, [*files, file("00001-late", 1)], names_grow=True)
    assert (found, cursor.late) == ([], 0)
    _, cursor = taken_all(cursor, [*files, file("00001-late", 1)])
    assert cursor.late == 1, "a whole listing finds it"


def test_a_listing_is_kept_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """New files beyond some pages are not kept, and a listing of its own takes them later."""
    monkeypatch.setattr(module, "SPARE", 3)
    files = [file(f"{name:03}", name % 7) for name in range(200)]

    page = take(Cursor(), reversed(files), limit=5, late=LATE, ends=False)
    assert len(page.rest) == 15
    found, cursor = taken_all(Cursor(), reversed(files), limit=5)

    assert found == sorted(files)
    assert cursor.late == 0


def test_a_bounded_source_reads_the_records_of_its_start() -> None:
    page = take(Cursor(), [file("a", 1), file("b", 2), file("c", 3)], limit=2, late=LATE, ends=True)
    assert page.has_more

    found, cursor = taken_all(after(page.cursor), [file("c", 3), file("later", 9)], ends=True)

    assert found == [file("c", 3)]
    assert cursor.until == 3 * SECOND


def test_an_empty_first_listing_of_a_source_that_ends_is_its_end() -> None:
    _, cursor = taken_all(Cursor(), [], ends=True)

    assert taken_all(cursor, [file("later", 9)], ends=True)[0] == []


def test_a_changed_file_in_the_window_is_reported_once() -> None:
    _, cursor = taken_all(Cursor(), [file("a", 1), file("b", 2)])

    page = take(cursor, [file("a", 3), file("b", 2)], limit=9, late=LATE, ends=False)

    assert (page.files, page.changed) == ((), ("/data/a",))
    again = take(page.cursor, [file("a", 3), file("b", 2)], limit=9, late=LATE, ends=False)
    assert (again.files, again.changed, again.cursor.changed) == ((), (), 1)


def test_a_file_that_vanishes_for_a_while_is_not_read_twice() -> None:
    """A listing of a network file system may lack a file for a moment."""
    files = [file("a", 1), file("b", 2)]
    _, cursor = taken_all(Cursor(), files)
    _, cursor = taken_all(cursor, files[1:])

    assert taken_all(cursor, files)[0] == []


def test_deleted_files_are_no_late_ones() -> None:
    files = [file(f"{at}", at) for at in range(100)]
    _, cursor = taken_all(Cursor(), files)

    _, cursor = taken_all(cursor, files[50:])

    assert cursor.late == 0


def test_files_that_come_back_as_they_were_are_no_late_ones() -> None:
    """A volume is not mounted for a while: its folder is there, and empty."""
    files = [file(f"{at}", at) for at in range(100)]
    _, cursor = taken_all(Cursor(), files)

    for shown in ([], files, files[30:], files[60:], files[30:], files, [], [], files):
        found, cursor = taken_all(cursor, shown)
        assert (found, cursor.late) == ([], 0)

    assert cursor.lost == {}
    _, cursor = taken_all(cursor, [*files, file("late", 1)])
    assert cursor.late == 1


@pytest.mark.parametrize(
    "comes", [file("0", 1), file("0", 0, size=2), file("other", 0)], ids=["time", "size", "name"]
)
def test_a_file_that_comes_in_place_of_a_deleted_one_is_late(comes: File) -> None:
    """Retention deletes files, which are not expected back. Others are told from them."""
    files = [file(f"{at}", at) for at in range(100)]
    _, cursor = taken_all(Cursor(), files)
    _, cursor = taken_all(cursor, files[60:])

    _, cursor = taken_all(cursor, [comes, *files[60:]])

    assert cursor.late == 1


def test_a_state_of_a_build_that_counted_in_another_way_is_taken_over() -> None:
    """Its counters tell nothing, so the first whole listing counts files and judges none."""
    files = [file(f"{at}", at) for at in range(100)]
    _, cursor = taken_all(Cursor(), files)
    data = cursor.to_json()
    data["before"] = data.pop("counters")
    former = Cursor.from_json(data)
    part = take(former, files[90:], limit=9, late=LATE, ends=False, extent=Extent.NAMED).cursor
    assert after(part).before is None

    _, counted = taken_all(after(part), [*files, file("unnoticed", 1)])
    _, found = taken_all(counted, [*files, file("unnoticed", 1), file("late", 1)])

    assert (counted.late, found.late) == (0, 1)


def test_no_file_is_read_again_when_it_is_forgotten_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others are deleted as soon as they were read, so no listed file is old."""
    monkeypatch.setattr(module, "WINDOW", 20)
    first = [file(f"first-{at}", at) for at in range(10)]
    _, cursor = taken_all(Cursor(), first)
    for at in range(100, 200):
        found, cursor = taken_all(cursor, [file(f"passing-{at}", at)])
        assert len(found) == 1
    assert (cursor.late, len(cursor.window)) == (0, 40)

    found, cursor = taken_all(cursor, first)

    assert found == []
    # What was lost with them is not told from them any more.
    assert cursor.late <= len(first)


def test_a_volume_that_is_back_without_what_was_deleted_meanwhile_has_no_late_files() -> None:
    files = [file(f"{at}", at) for at in range(1000)]
    _, cursor = taken_all(Cursor(), files)
    _, cursor = taken_all(cursor, files[900:])

    _, cursor = taken_all(cursor, files[7:])
    assert cursor.late == 0

    _, cursor = taken_all(cursor, files)
    assert cursor.late == 0, "those are back, too"
    _, cursor = taken_all(cursor, [*files, file("late", 1)])
    assert cursor.late == 1


def test_a_few_files_that_are_back_in_part_may_be_late_ones() -> None:
    files = [file(f"{at}", at) for at in range(1000)]
    _, cursor = taken_all(Cursor(), files)
    _, cursor = taken_all(cursor, files[500:])

    _, cursor = taken_all(cursor, [file("other", 3), *files[500:]])

    assert cursor.late == 1


Away = st.lists(st.sampled_from(range(40)), max_size=40, unique=True)


@settings(max_examples=100, deadline=None)
@given(listings=st.lists(Away, max_size=4), late=st.integers(0, 3), more=st.integers(0, 30))
def test_whatever_was_away_only_late_files_count(
    listings: list[list[int]], late: int, more: int
) -> None:
    """Each listing lacks more files than the one before; then all are there again.

    The horizon moves meanwhile.
    """
    there = [file(f"first-{at}", at) for at in range(40)]
    _, cursor = taken_all(Cursor(), there)
    away, newer = set[int](), list[File]()
    for number, lacks in enumerate(listings):
        away |= set(lacks)
        newer.append(file(f"newer-{number}", 40 + number * more))
        _, cursor = taken_all(
            cursor, [*(one for at, one in enumerate(there) if at not in away), *newer]
        )
    assert cursor.late == 0

    came = [file(f"late-{number}", 1) for number in range(late)]
    _, cursor = taken_all(cursor, [*there, *newer, *came])

    assert (cursor.late > 0) == bool(came)
    assert cursor.late <= late + len(away)


def test_the_window_is_bounded_and_the_rest_is_still_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WINDOW", 10)
    files = [file(f"{name:03}", 5) for name in range(50)]

    found, cursor = taken_all(Cursor(), files, limit=7)

    assert found == files
    assert len(cursor.window) <= 20
    assert taken_all(cursor, files)[0] == []
    assert taken_all(cursor, [*files, file("zzz", 5)])[0] == [file("zzz", 5)]


def test_the_state_does_not_grow_once_the_window_is_full() -> None:
    """`tests/integration/files` feeds a million files."""
    cursor, sizes = Cursor(), []
    for page in range(10):
        made = [
            File(page * 4_000_000 + n * 1000, f"/data/part-{page:05}-{n:05}.parquet", 7)
            for n in range(4000)
        ]
        cursor = take(cursor, made, limit=4096, late=3600, ends=False).cursor
        sizes.append(len(json.dumps(cursor.to_json())))

    assert max(sizes[5:]) < min(1.1 * sizes[4], 1024 * 1024)


def test_equal_cursors_give_equal_documents() -> None:
    """Whatever the order is in which files were found: a state is stored when it has changed."""
    first, second = file("a", 3), file("b", 2)
    seen = {cursor_hash: Seen(one.modified, 7) for cursor_hash, one in ((5, first), (9, second))}
    counters = {3: Counter(1, 4), 2: Counter(2, 8)}
    one = Cursor(window=seen, before=counters)
    other = Cursor(window=dict(reversed(seen.items())), before=dict(reversed(counters.items())))
    lost = {3: (Counter(1, 4), Counter(1, 2)), 2: (Counter(2, 8),)}
    one, other = replace(one, lost=lost), replace(other, lost=dict(reversed(lost.items())))

    assert json.dumps(one.to_json()) == json.dumps(other.to_json())
    assert after(one) == one


def test_a_long_listing_keeps_only_the_first_files() -> None:
    """Whatever the order of the listing is."""
    found = Nearest(keep=3)
    for number in range(50, 0, -1):
        found.add(file(f"{number:02}", number))
        assert len(found._files) <= 6
    for number in range(51, 90):
        found.add(file(f"{number:02}", number))

    assert found.files == [file(f"{number:02}", number) for number in (1, 2, 3)]
    assert len(found._files) == 3
    assert (found.newest, found.lowest) == (89 * SECOND, "/data/01")
    assert (Nearest(3).newest, Nearest(3).lowest) == (-(2**63), None)


@pytest.mark.parametrize(
    "damage",
    [{}, {"horizon": 3}, [], "x", {"horizon": [1, "a"], "window": [[1, "!"]]}, {"lost": [[1]]}],
)
def test_a_damaged_cursor_is_refused(damage: object) -> None:
    with pytest.raises(CorruptDocumentError):
        Cursor.from_json(damage)


@pytest.mark.parametrize("length", [15, 17, 31])
def test_a_cursor_whose_window_was_cut_is_refused(length: int) -> None:
    _, cursor = taken_all(Cursor(), [file("a", 5), file("b", 5)])
    data = json.loads(json.dumps(cursor.to_json()))
    ((time, text),) = data["window"]
    data["window"] = [[time, base64.b64encode(base64.b64decode(text)[:length]).decode()]]

    with pytest.raises(CorruptDocumentError, match="torn entry of the window"):
        Cursor.from_json(data)


def test_files_that_vanish_do_not_push_listed_ones_out_of_the_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The folder is tidied up: all but one file are deleted once they are read."""
    monkeypatch.setattr(module, "WINDOW", 4)
    stays, read, cursor = file("stays", 100), list[File](), Cursor()
    for number in range(8):
        brief = [file(f"{number}-{n}", 101) for n in range(3)]
        found, cursor = taken_all(cursor, [stays, *brief])
        read += found

    assert read.count(stays) == 1
    assert len(read) == 1 + 8 * 3
    assert len(cursor.window) == 2 * module.WINDOW


def test_after_a_change_of_paths_all_files_are_listed_once() -> None:
    """What is below the floor of the former paths says nothing of others."""
    source = FilesSource(paths=("/data/*",), kind_of_file=Format.TEXT, names_grow=True)
    known = {**Cursor(floor="/data/m").to_json(), "paths": ["/data/*"]}

    assert source.list_page(2, known).floor == "/data/m"
    assert source.list_page(2, {**known, "paths": ["/data/*", "/more/*"]}).floor == ""
    assert replace(source, names_grow=False).list_page(2, known).floor == ""


def test_files_that_come_once_a_source_with_an_end_has_begun_move_no_horizon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are not read, so nothing is known of them, however many they are."""
    monkeypatch.setattr(module, "WINDOW", 2)
    first = [file("first", 5)]
    _, begun = taken_all(Cursor(), first, ends=True)
    later = [file(f"later-{number}", 9) for number in range(5)]

    found, cursor = taken_all(begun, [*first, *later], ends=True)

    assert (found, cursor.horizon, cursor.late) == ([], begun.horizon, 0)
