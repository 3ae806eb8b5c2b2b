"""Figures and pictures of a load that goes up and down."""

from xml.etree import ElementTree as ET

import pytest

from demo.curve import BARS, WIDTH, Curve, Point, picture


def curve(*readers: int) -> Curve:
    points = (
        Point(at=10.0 * number, load=100, readers=count, lag=1000)
        for number, count in enumerate(readers)
    )
    return Curve(name="test", points=tuple(points))


def test_figures_are_areas_under_the_curve() -> None:
    followed = curve(1, 4, 4, 2)

    assert followed.reader_hours == pytest.approx((1 + 4 + 4) * 10 / 3600)
    assert followed.lag_seconds == 30 * 1000


@pytest.mark.parametrize(
    ("readers", "reversals"),
    [((1, 2, 3), 0), ((1, 3, 3, 2), 1), ((1, 3, 1, 3), 2), ((2, 2, 2), 0)],
)
def test_reversals_count_changes_of_direction(readers: tuple[int, ...], reversals: int) -> None:
    assert curve(*readers).reversals == reversals


@pytest.mark.parametrize(
    ("readers", "is_followed"),
    [((1, 4, 2), True), ((1, 4, 4), False), ((4, 4, 2), False), ((2, 2), False)],
)
def test_a_load_is_followed_up_and_down(readers: tuple[int, ...], *, is_followed: bool) -> None:
    assert curve(*readers).is_followed is is_followed


def test_the_text_shows_the_largest_value_as_the_highest_bar() -> None:
    lines = curve(1, 8, 1).text().splitlines()

    readers = next(line for line in lines if "readers ≤ 8" in line)
    bars = readers[-WIDTH:]
    assert bars.count(BARS[-1]) == 1
    assert bars.index(BARS[-1]) == WIDTH // 2


def test_the_picture_has_three_lines_for_each_curve() -> None:
    drawn = picture("readers & load", [curve(1, 2), curve(1, 3)])
    image = ET.fromstring(drawn)  # noqa: S314 - drawn a moment ago

    lines = [part for part in image if part.tag.endswith("polyline")]
    assert len(lines) == 6
    assert all(len(line.attrib["points"].split()) == 2 for line in lines)
