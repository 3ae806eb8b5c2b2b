"""Bar charts of a run, one SVG file per case: `make bench-read ARGS="--plots docs/figures"`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

FIGURES: Final[Mapping[str, str]] = {
    "rows_per_s_running": "rows per second while micro-batches run",
    "rows_per_s": "rows per second, whole run",
    "cpu_s_per_million": "CPU seconds per million rows (less is better)",
    "addBatch_p50": "addBatch, median in ms (less is better)",
    "trigger_p50": "trigger, median in ms (less is better)",
}
"""What is drawn, if a case has it."""

WIDTH: Final = 760
_LABEL: Final = 170
_NUMBERS: Final = 190
_BAR: Final = 16
_ROW: Final = 22
_HEAD: Final = 30
_STYLE: Final = (
    "text{font:12px sans-serif;fill:#444}.h{font-weight:bold}"
    "rect{fill:#9bb3c9}.ours{fill:#d9822b}line{stroke:#444}"
    "@media(prefers-color-scheme:dark){text{fill:#ccc}line{stroke:#ccc}}"
)


def write_plots(folder: Path, cases: Mapping[str, Mapping[str, Any]]) -> list[Path]:
    """Write a chart of each case; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        folder / f"{name}.svg": chart(name, case["contestants"]) for name, case in cases.items()
    }
    for file, drawn in files.items():
        file.write_text(drawn + "\n")
    return list(files)


def chart(title: str, contestants: Mapping[str, Mapping[str, Any]]) -> str:
    """Return an SVG image.

    A group of bars per figure, medians with a line from the least to the largest.

    Args:
        title: of the image, for those who cannot see it.
        contestants: name → figure → spread, as `figures.summary` returns them.
    """
    image = ET.Element("svg", xmlns="http://www.w3.org/2000/svg", role="img", width=str(WIDTH))
    ET.SubElement(image, "title").text = title
    ET.SubElement(image, "style").text = _STYLE
    top = 0
    for figure, label in FIGURES.items():
        spreads = {name: found[figure] for name, found in contestants.items() if found.get(figure)}
        if spreads:
            _text(image, 0, top + _ROW - 4, label, kind="h")
            top = _bars(image, top + _HEAD, spreads)
    image.set("height", str(top))
    image.set("viewBox", f"0 0 {WIDTH} {top}")
    ET.indent(image)
    return ET.tostring(image, encoding="unicode")


def _bars(image: ET.Element, top: int, spreads: Mapping[str, Mapping[str, float]]) -> int:
    """Draw one bar per contestant; returns where the next group begins."""
    largest = max(found["max"] for found in spreads.values()) or 1.0
    scale = (WIDTH - _LABEL - _NUMBERS) / largest
    for (name, found), y in zip(spreads.items(), _rows(top), strict=False):
        _text(image, 0, y + _BAR - 4, name)
        length = found["median"] * scale
        kind = {"class": "ours"} if name.startswith("ours") else {}
        _shape(image, "rect", x=_LABEL, y=y, width=length, height=_BAR, **kind)
        middle = y + _BAR / 2
        ends = {"x1": _LABEL + found["min"] * scale, "x2": _LABEL + found["max"] * scale}
        _shape(image, "line", y1=middle, y2=middle, **ends)
        _text(image, WIDTH - _NUMBERS + 10, y + _BAR - 4, _numbers(found))
    return top + _ROW * len(spreads) + _HEAD // 2


def _rows(top: int) -> Iterator[int]:
    while True:
        yield top
        top += _ROW


def _numbers(found: Mapping[str, float]) -> str:
    median, least, most = (_short(found[key]) for key in ("median", "min", "max"))
    return f"{median} ({least} to {most})"


def _short(number: float) -> str:
    return f"{number / 1e6:.2f} M" if number >= 1e5 else f"{number:.3g}"


def _text(image: ET.Element, x: float, y: float, text: str, *, kind: str = "") -> None:
    _shape(image, "text", x=x, y=y, **({"class": kind} if kind else {})).text = text


def _shape(image: ET.Element, shape: str, **attributes: float | str) -> ET.Element:
    given = {k: v if isinstance(v, str) else f"{v:.1f}" for k, v in attributes.items()}
    return ET.SubElement(image, shape, given)
