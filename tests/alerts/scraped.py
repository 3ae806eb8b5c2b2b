"""Gives the series of the cases the labels that a scrape adds: no alert about a source has them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

SCRAPE_LABELS: Final[Mapping[str, str]] = {
    "container": "operator",
    "endpoint": "metrics",
    "instance": "10.0.0.7:8080",
    "node": "node-1",
    "pod": "operator-7",
}
"""Labels that tell one pod of the operator, or one start of it, from the next."""


def scraped(cases: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the cases with these labels, except of series whose pod the case names."""
    return [
        {**case, "input_series": [_scraped(entry) for entry in case["input_series"]]}
        for case in cases
    ]


def _scraped(entry: Mapping[str, str]) -> dict[str, str]:
    name, _, labels = entry["series"].partition("{")
    if "pod=" in labels:
        return dict(entry)
    added = ",".join(f'{label}="{value}"' for label, value in SCRAPE_LABELS.items())
    return {**entry, "series": f"{name}{{{added},{labels}"}
