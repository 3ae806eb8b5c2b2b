"""Pauses that grow with each failure in a row."""

from typing import Final

_MOST_DOUBLINGS: Final = 64
"""Far more than any longest pause needs; the largest float overflows at 1024."""


def backoff(failures: int, *, first: float, longest: float) -> float:
    """Return the seconds to wait after so many failures in a row.

    Args:
        failures: in a row, at least 1.
        first: seconds after the first failure; twice as long after each further one.
        longest: seconds at most.
    """
    doublings = min(failures - 1, _MOST_DOUBLINGS)
    return float(min(first * 2.0**doublings, longest))
