"""The charts of a run."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from benchmarks.reading.plots import chart, write_plots

pytestmark = pytest.mark.unit

SVG = "{http://www.w3.org/2000/svg}"
CONTESTANTS = {
    "ours": {"rows_per_s": {"min": 1e6, "median": 2e6, "max": 3e6, "n": 5}},
    "spark, <tuned>": {"rows_per_s": {"min": 5e5, "median": 1e6, "max": 1.5e6, "n": 5}},
    "nothing finished": {"batches": {"min": 0, "median": 0, "max": 0, "n": 5}},
}


def test_bars_are_as_long_as_the_medians_and_lines_show_the_spread() -> None:
    image = ET.fromstring(chart("backlog", CONTESTANTS))  # noqa: S314 - drawn a moment ago
    bars = [float(bar.attrib["width"]) for bar in image.iter(f"{SVG}rect")]
    lines = [
        (float(each.attrib["x1"]), float(each.attrib["x2"])) for each in image.iter(f"{SVG}line")
    ]
    origin = next(float(bar.attrib["x"]) for bar in image.iter(f"{SVG}rect"))

    assert bars == pytest.approx([2 * bars[1], bars[1]], abs=0.2)
    assert [bar.get("class") for bar in image.iter(f"{SVG}rect")] == ["ours", None]
    assert lines[0] == pytest.approx((origin + bars[1], origin + bars[0] * 1.5), abs=0.2)


def test_names_and_numbers_are_text_and_what_has_no_figure_is_left_out() -> None:
    image = ET.fromstring(chart("backlog", CONTESTANTS))  # noqa: S314 - drawn a moment ago
    texts = [text.text for text in image.iter(f"{SVG}text")]

    assert texts == [
        "rows per second, whole run",
        "ours",
        "2.00 M (1.00 M to 3.00 M)",
        "spark, <tuned>",
        "1.00 M (0.50 M to 1.50 M)",
    ]


def test_there_is_a_file_per_case(tmp_path: Path) -> None:
    (file,) = write_plots(tmp_path / "new", {"backlog": {"contestants": CONTESTANTS}})

    assert file.name == "backlog.svg"
    assert file.read_text().startswith("<svg")
