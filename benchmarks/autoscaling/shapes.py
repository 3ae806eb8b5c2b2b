"""Loads over time: records per second of each split, with noise from a seed."""

import csv
import math
import random
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SPLITS: Final = 24
TICK: Final = 5.0
"""Seconds of one step of the simulation."""

HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A load.

    Attributes:
        name: for the table.
        hours: how long it lasts.
        total: seconds → records per second of all splits.
        hot: seconds → records per second that the first split gets on top.
    """

    name: str
    hours: float
    total: Callable[[float], float]
    hot: Callable[[float], float] = lambda _: 0.0

    def rates(self, seed: int) -> Iterator[list[float]]:
        """Yield the rates of all splits, tick by tick: splits differ by 10 %, ticks by 5 %."""
        noise = random.Random(f"{self.name} {seed}")
        weights = [noise.uniform(0.9, 1.1) for _ in range(SPLITS)]
        scale = 1 / sum(weights)
        for tick in range(round(self.hours * HOUR / TICK)):
            now = tick * TICK
            level = self.total(now) * noise.lognormvariate(0, 0.05) * scale
            rates = [level * weight for weight in weights]
            rates[0] += self.hot(now)
            yield rates


def _daily(now: float) -> float:
    return 8000 - 6000 * math.cos(2 * math.pi * now / (24 * HOUR))


def _step(now: float) -> float:
    return 11_000 if 0.5 * HOUR <= now < 1.5 * HOUR else 3000


def _spike(now: float) -> float:
    return 15_000 if 0.5 * HOUR <= now % (1.5 * HOUR) < 0.5 * HOUR + 180 else 3000


def _sawtooth(now: float) -> float:
    return 2000 + 10_000 * (now % 2400) / 2400


def _hot(now: float) -> float:
    return 1600 if 0.5 * HOUR <= now < HOUR else 0


SHAPES: Final = (
    Shape(name="daily curve", hours=24, total=_daily),
    Shape(name="step", hours=2.5, total=_step),
    Shape(name="spike", hours=4.5, total=_spike),
    Shape(name="sawtooth", hours=4, total=_sawtooth),
    Shape(name="hot key", hours=2, total=lambda _: 4000, hot=_hot),
)


RECORDING: Final = Path(__file__).with_name("departures.csv")
"""A recorded load; the file says of what."""


def recorded(file: Path) -> Shape:
    """Return a recorded load.

    Args:
        file: lines of `seconds,records per second`, in the order of time. A rate lasts until the
            time of the next line, and the last line says when the recording ends. Lines that begin
            with `#` are comments.
    """
    with file.open(encoding="utf-8") as lines:
        rows = csv.reader(line for line in lines if not line.startswith("#"))
        points = [(float(at), float(rate)) for at, rate in rows]
    times = [at for at, _ in points]

    def total(now: float) -> float:
        return points[max(0, bisect_right(times, now) - 1)][1]

    return Shape(name=file.stem, hours=times[-1] / HOUR, total=total)
