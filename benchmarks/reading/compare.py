"""Compares a run with an earlier one that was kept as JSON, and names what became slower."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

TOLERANCE: Final = 0.05
"""A ratio that fell by more than this share is a regression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A ratio to a rival, in the earlier run and in this one. Above 1 is faster than the rival."""

    case: str
    contestant: str
    rival: str
    figure: str
    before: float
    now: float

    @property
    def is_regression(self) -> bool:
        """Whether the ratio fell by more than the tolerance."""
        return self.now < self.before * (1 - TOLERANCE)

    def __str__(self) -> str:
        """Return the line for people."""
        share = (self.now / self.before - 1) * 100
        return (
            f"{self.case}: {self.contestant} to {self.rival}, {self.figure}: "
            f"{self.before:.2f} before, {self.now:.2f} now ({share:+.0f} %)"
        )


def changes(earlier: Mapping[str, Any], results: Mapping[str, Any]) -> Iterator[Change]:
    """Yield each median ratio that both runs measured.

    Ratios within a run are compared, not rows per second: the machine may be faster or slower
    today.
    """
    for case, result in results["cases"].items():
        before = earlier["cases"].get(case, {}).get("ratios", {})
        for rival, contestants in result["ratios"].items():
            for contestant, figures in contestants.items():
                for figure, ratio in figures.items():
                    former = before.get(rival, {}).get(contestant, {}).get(figure)
                    if ratio and former:
                        yield Change(
                            case=case,
                            contestant=contestant,
                            rival=rival,
                            figure=figure,
                            before=former["median"],
                            now=ratio["median"],
                        )
