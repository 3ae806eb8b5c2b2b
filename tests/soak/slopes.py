"""Regression over samples: how fast something grows, and whether that is too fast. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

LIMITS: Final[Mapping[str, float]] = {"mib": 1.0, "threads": 0.1, "fds": 0.1}
"""Growth per hour that is allowed to each process."""

REQUESTS: Final = 0.05
"""Change of the request rate per hour that still counts as constant, as a share of its mean."""

SHORT: Final[Mapping[str, float]] = {"mib": 24.0, "threads": 4.0, "fds": 4.0}
"""Growth over the whole of a short run that is allowed to each process: a leak of the harness's own
kind would show, while a slope per hour would be that of the warm-up."""

SHORT_REQUESTS: Final = 0.5
"""The same for the request rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look at all processes.

    Attributes:
        at: hours since the start.
        processes: MiB, threads and file descriptors (keys of `LIMITS`) by name of the process.
        requests: that the API server has answered so far.
        behind: records that are produced and not read. They wait in the workers, so the memory of
            workers follows them: with other work on the machine, they grow.
    """

    at: float
    processes: Mapping[str, Mapping[str, float]]
    requests: float
    behind: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """A straight line through samples.

    Attributes:
        per_hour: growth.
        mean: of the values.
    """

    per_hour: float
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a run has shown.

    Attributes:
        hours: that were measured, after the warm-up.
        worst: the largest slope by key of `LIMITS`.
        requests: requests per second.
        failures: what grows too fast, in words.
    """

    hours: float
    worst: Mapping[str, float]
    requests: float
    failures: Sequence[str]

    def __str__(self) -> str:
        word = "OK" if not self.failures else "FAILED"
        return (
            f"soak: {word} hours={self.hours:.2f} slope_mib_h={self.worst['mib']:.2f}"
            f" threads_h={self.worst['threads']:.2f} fds_h={self.worst['fds']:.2f}"
            f" requests_s={self.requests:.1f}"
        )


def slope(points: Sequence[tuple[float, float]]) -> Slope:
    """Return the least-squares line through points of hours and values.

    Flat with fewer than three.
    """
    count = len(points)
    mean_x, mean_y = (sum(point[axis] for point in points) / max(count, 1) for axis in (0, 1))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if count < 3 or not spread:
        return Slope(per_hour=0.0, mean=mean_y)
    per_hour = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return Slope(per_hour=per_hour, mean=mean_y)


def rates(samples: Sequence[Sample]) -> list[tuple[float, float]]:
    """Return requests per second between each two samples; a counter that fell has begun again."""
    seconds = [(b.at, b.requests - a.requests, (b.at - a.at) * 3600) for a, b in pairwise(samples)]
    return [(at, count / time) for at, count, time in seconds if time > 0 and count >= 0]


def behind(samples: Sequence[Sample], *, warm_up: float) -> tuple[float, float]:
    """Return the records behind, in the middle of the first and of the last quarter of a run."""
    counts = [sample.behind for sample in samples if sample.at >= warm_up] or [0]
    quarter = max(1, len(counts) // 4)
    return median(counts[:quarter]), median(counts[-quarter:])


def judge(samples: Sequence[Sample], *, warm_up: float, is_short: bool = False) -> Verdict:
    """Return the verdict about a run.

    Args:
        samples: in order of time.
        warm_up: hours at the beginning that do not count.
        is_short: whether the run is too short for growth per hour; then its growth as a whole is
            judged, see `SHORT`.
    """
    counted = [sample for sample in samples if sample.at >= warm_up]
    hours = counted[-1].at - counted[0].at if counted else 0.0
    scale, limits, share = (hours, SHORT, SHORT_REQUESTS) if is_short else (1.0, LIMITS, REQUESTS)
    names = sorted({name for sample in counted for name in sample.processes})
    span = " in the whole run" if is_short else " an hour"
    failures, worst = [], dict.fromkeys(LIMITS, 0.0)
    for name in names:
        here = [sample for sample in counted if name in sample.processes]
        for key, limit in limits.items():
            found = slope([(sample.at, sample.processes[name][key]) for sample in here])
            worst[key] = max(worst[key], found.per_hour)
            if found.per_hour * scale > limit:
                failures.append(
                    f"{name}: {key} grows by {found.per_hour * scale:.2f}, more than"
                    f" {limit:g}{span}"
                )
    requests = slope(rates(counted))
    if abs(requests.per_hour) * scale > share * requests.mean:
        failures.append(
            f"requests per second change by {requests.per_hour * scale:.2f}{span}, of"
            f" {requests.mean:.1f}"
        )
    return Verdict(hours=hours, worst=worst, requests=requests.mean, failures=failures)
