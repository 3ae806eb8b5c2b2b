"""Figures with their spread."""

import statistics
from collections.abc import Sequence


def spread(values: Sequence[float], digits: int = 3) -> dict[str, float]:
    """Minimum, median and maximum."""
    return {
        "min": round(min(values), digits),
        "median": round(statistics.median(values), digits),
        "max": round(max(values), digits),
        "n": len(values),
    }
