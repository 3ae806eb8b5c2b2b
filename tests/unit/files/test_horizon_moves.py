"""What a cursor does with files that its horizon passes, and what its source says of itself."""

import json
from collections.abc import Iterable
from dataclasses import replace

import pytest

from balanced_source.api import Measure, SwitchPosition
from balanced_source.connectors.files import (
    Cursor,
    File,
    FilesSource,
    Format,
    counting,
    position_of,
    take,
)
from balanced_source.connectors.files.counting import Counter
from balanced_source.connectors.files.source import with_position
from balanced_source.connectors.pull import Page
from balanced_source.errors import InvalidSpecError

SECOND = 1_000_000_000


def file(name: str, at: int) -> File:
    return File(at * SECOND, f"/data/{name}", 1)


def taken(cursor: Cursor, files: Iterable[File]) -> tuple[list[File], Cursor]:
    page = take(cursor, files, limit=100, late=10, ends=False)
    return list(page.files), page.cursor


def test_the_floor_is_below_the_files_that_are_still_behind_the_horizon() -> None:
    """Those that it has passed need not be listed any more."""
    first, second, third = (file(f"{at:05}", at) for at in (1, 100, 200))
    _, before = taken(Cursor(), [first, second])

    found, cursor = taken(before, [first, second, third])

    assert found == [third]
    assert before.floor == "/data/0000", "all of them were new"
    assert cursor.floor == "/data/0020"


def test_a_file_that_is_back_after_the_horizon_has_reached_its_time_is_no_late_one() -> None:
    """It was read, and its name is still known. From then on it is counted with the others."""
    away, beside, newest = file("a", 100), file("b", 100), file("z", 200)
    _, cursor = taken(Cursor(), [away])
    found, cursor = taken(cursor, [beside, newest])
    assert found == [beside, newest]
    assert cursor.horizon == (beside.modified, beside.path)
    assert len(cursor.window) == 2

    for _ in range(2):
        found, cursor = taken(cursor, [away, beside, newest])
        assert (found, cursor.late, cursor.changed) == ([], 0, 0)
        assert len(cursor.window) == 1


def source(kind: Format = Format.PARQUET) -> FilesSource:
    return FilesSource(paths=("/in",), kind_of_file=kind)


def test_only_parquet_files_are_measured() -> None:
    measure = Measure(time="at")

    assert source().measuring(measure, field="parts[1]").measure == measure
    for kind in set(Format) - {Format.PARQUET}:
        with pytest.raises(InvalidSpecError, match=f"files of format {kind.value} do not say"):
            source(kind).measuring(measure, field="parts[1]")


def test_what_was_measured_is_kept_beside_the_cursor() -> None:
    page: Page[object] = Page(cursor={"late": 1})  # type: ignore[type-var]
    position = SwitchPosition(time=7)

    measured = with_position(page, position)  # type: ignore[arg-type]

    assert position_of(measured.cursor) == position
    assert measured.cursor["late"] == 1  # type: ignore[call-overload,index]
    assert position_of(page.cursor) == position_of(None) == SwitchPosition()


def test_files_say_no_event_times_and_which_setting_repeats_them() -> None:
    assert not source().has_event_times
    assert source().repeat_advice() == "set allowRepeat: true"


def test_counters_of_stored_cursors_are_counted_in_the_same_way_forever() -> None:
    """Another sum would take all files of a former version for late ones."""
    counters: dict[int, Counter] = {}
    counting.count(counters, 2**64 - 1, 5)
    counting.count(counters, 2**64 - 257, 2**64 - 1)

    assert counters == {255: Counter(2, 5442119120697748762)}
    assert counting.digest("/data/a") == 10578219419689825260


def test_older_losses_of_a_counter_are_remembered_as_one() -> None:
    """Each file of them counts once, or its return would not be seen."""
    lost: dict[int, tuple[Counter, ...]] = {7: (Counter(9, 9),)}
    for number in range(counting.LOSSES + 2):
        lost = dict(counting.with_loss(lost, {3: Counter(1, 1 << number)}))

    assert lost == {
        7: (Counter(9, 9),),
        3: (Counter(3, 0b111), Counter(1, 8), Counter(1, 16), Counter(1, 32)),
    }


def test_files_of_one_time_are_stored_in_one_order() -> None:
    files = [file(f"{number:02}", 100) for number in range(20)]
    _, cursor = taken(Cursor(), files)

    turned = replace(cursor, window=dict(reversed(cursor.window.items())))

    assert len(cursor.window) == len(files)
    assert list(turned.window) != list(cursor.window)
    assert json.dumps(turned.to_json()) == json.dumps(cursor.to_json())
    assert Cursor.from_json(turned.to_json()) == cursor
