"""What a load did to a source over time: figures, text for a terminal, and an SVG image."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree as ET

BARS: Final = "▁▂▃▄▅▆▇█"
WIDTH: Final = 72
"""Characters of a line of bars."""

_PLOT: Final = (640, 70)
"""Points of a curve in the image."""

_LEFT: Final = 110
_ROW: Final = 90
_STYLE: Final = (
    "text{font:12px sans-serif;fill:#444}.h{font-weight:bold}"
    "polyline{fill:none;stroke:#d9822b;stroke-width:1.5}line{stroke:#999}"
    "@media(prefers-color-scheme:dark){text{fill:#ccc}}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A source at one moment.

    Attributes:
        at: seconds since the load began.
        load: records per second that are produced.
        readers: of the newest adopted epoch.
        lag: records that are not read yet.
    """

    at: float
    load: int
    readers: int
    lag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """What one autoscaler made of a load.

    Attributes:
        name: of the autoscaler.
        points: in the order of time, two at least.
    """

    name: str
    points: tuple[Point, ...]

    @property
    def reader_hours(self) -> float:
        """Readers over time, in hours."""
        return self._area(lambda point: point.readers) / 3600

    @property
    def lag_seconds(self) -> float:
        """Lag over time: records times seconds."""
        return self._area(lambda point: point.lag)

    @property
    def reversals(self) -> int:
        """How often the number of readers changed its direction."""
        counts = [point.readers for point in self.points]
        steps = [b - a for a, b in itertools.pairwise(counts) if a != b]
        return sum((a > 0) != (b > 0) for a, b in itertools.pairwise(steps))

    @property
    def is_followed(self) -> bool:
        """Whether there were more readers after the first ones, and fewer again after these."""
        counts = [point.readers for point in self.points]
        most = max(counts)
        return counts[0] < most > counts[-1]

    def text(self) -> str:
        """Return the curve as lines of bars, and its figures."""
        rows = [f"  {label:<20} {self._bars(value)}" for label, value in self._rows()]
        return "\n".join([f"{self.name}: {self.figures()}", *rows])

    def figures(self) -> str:
        """Return the figures in words."""
        counts = [point.readers for point in self.points]
        return (
            f"{self.reader_hours:.3f} reader-hours, lag {self.lag_seconds / 1e6:.3f}·10⁶ records·s"
            f" (most {max(point.lag for point in self.points)}), {min(counts)} to {max(counts)}"
            f" readers, {self.reversals} changes of direction, {self.points[-1].at:.0f} s"
        )

    def _rows(self) -> Sequence[tuple[str, Callable[[Point], int]]]:
        """Return what is drawn: its label with the largest value, and the value of a point."""
        found: list[tuple[str, Callable[[Point], int]]] = [
            ("records/s", lambda point: point.load),
            ("readers", lambda point: point.readers),
            ("lag", lambda point: point.lag),
        ]
        return [(f"{name} ≤ {max(map(value, self.points))}", value) for name, value in found]

    def _bars(self, value: Callable[[Point], int]) -> str:
        """Return a bar for each part of the time: its largest value."""
        last, most = self.points[-1].at or 1.0, max(map(value, self.points)) or 1
        cells = [0] * WIDTH
        for point in self.points:
            cell = min(WIDTH - 1, int(point.at / last * WIDTH))
            cells[cell] = max(cells[cell], value(point))
        return "".join(BARS[round(cell / most * (len(BARS) - 1))] for cell in cells)

    def _area(self, value: Callable[[Point], int]) -> float:
        return sum(value(a) * (b.at - a.at) for a, b in itertools.pairwise(self.points))

    def draw(self, image: ET.Element, top: int) -> int:
        """Draw the curve into an image below `top`; returns where the next one begins."""
        _text(image, 0, top + 14, f"{self.name}: {self.figures()}", kind="h")
        for label, value in self._rows():
            _text(image, 0, top + 60, label)
            self._line(image, top + 24, value)
            top += _ROW
        return top + 24

    def _line(self, image: ET.Element, top: int, value: Callable[[Point], int]) -> None:
        width, height = _PLOT
        last, most = self.points[-1].at or 1.0, max(map(value, self.points)) or 1
        bottom = str(top + height)
        ET.SubElement(image, "line", x1=str(_LEFT), x2=str(_LEFT + width), y1=bottom, y2=bottom)
        places = (
            (_LEFT + point.at / last * width, top + height * (1 - value(point) / most))
            for point in self.points
        )
        ET.SubElement(image, "polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in places))


def picture(title: str, curves: Sequence[Curve]) -> str:
    """Return an SVG image of all curves, one below the other."""
    image = ET.Element("svg", xmlns="http://www.w3.org/2000/svg", role="img")
    ET.SubElement(image, "title").text = title
    ET.SubElement(image, "style").text = _STYLE
    top = 0
    for curve in curves:
        top = curve.draw(image, top)
    width = _LEFT + _PLOT[0] + 10
    for name, size in (("width", width), ("height", top)):
        image.set(name, str(size))
    image.set("viewBox", f"0 0 {width} {top}")
    ET.indent(image)
    return ET.tostring(image, encoding="unicode")


def _text(image: ET.Element, x: int, y: int, text: str, *, kind: str = "") -> None:
    ET.SubElement(image, "text", {"x": str(x), "y": str(y), "class": kind}).text = text
