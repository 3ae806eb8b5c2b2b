"""`make bench-autoscale`.

The product's autoscaler beside a horizontal pod autoscaler on lag, tuned for each load.

    python -m benchmarks.autoscaling [--seed 1] [--recorded FILE.csv]

The loads are synthetic ones, the recording `departures.csv`, and yours.

Both have the same bounds. The rival is tuned by a grid for each load, with the load known in
advance: of all settings, the one with the least product of lag and reader-hours. `better than` and
`worse than` count settings of the whole grid, also with a larger minimum, that are worse and better
than the product on both counts.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.autoscaling.rivals import Own, PodAutoscaler, grid
from benchmarks.autoscaling.shapes import RECORDING, SHAPES, Shape, recorded
from benchmarks.autoscaling.world import Outcome, World

FIRST_READERS: Final = 4

_HEAD: Final = """\
Lag: unread records × seconds, in millions. HPA: AverageValue in records / window in s / share \
per minute.

| load | lag | lag, HPA | reader-hours | reader-hours, HPA \
| reversals per hour | reversals, HPA | HPA's settings \
| better on both | better than | worse than | HPA with a tuned minimum: lag \
| reader-hours | minReplicas |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the rival."""

    outcome: Outcome
    settings: PodAutoscaler


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One load: the product, and the rival with all its settings."""

    own: Outcome
    rivals: tuple[Run, ...]

    @property
    def best(self) -> Run:
        """The tuned rival with the same bounds."""
        return _tuned([run for run in self.rivals if run.settings.fewest == 1])

    @property
    def best_of_all(self) -> Run:
        """The tuned rival whose minimum is tuned, too."""
        return _tuned(self.rivals)

    @property
    def is_better(self) -> bool:
        """Whether the product has less lag and fewer reader-hours than the tuned rival."""
        return _is_better(self.own, self.best.outcome)

    def row(self, name: str) -> str:
        """Return the row of the table."""
        own, best, least = self.own, self.best, self.best_of_all
        dominates = sum(_is_better(own, run.outcome) for run in self.rivals)
        dominated = sum(_is_better(run.outcome, own) for run in self.rivals)
        cells = (
            name,
            f"{own.lag:.2f}",
            f"{best.outcome.lag:.2f}",
            f"{own.readers:.2f}",
            f"{best.outcome.readers:.2f}",
            own.reversals,
            best.outcome.reversals,
            f"{best.settings.target:.0f} / {best.settings.window:.0f} / {best.settings.step}",
            "yes" if self.is_better else "no",
            f"{dominates} of {len(self.rivals)}",
            f"{dominated} of {len(self.rivals)}",
            f"{least.outcome.lag:.2f}",
            f"{least.outcome.readers:.2f}",
            least.settings.fewest,
        )
        return f"| {' | '.join(map(str, cells))} |"


def compare(shape: Shape, seed: int) -> Comparison:
    """Run the product and all settings of the rival on one load."""
    load = list(shape.rates(seed))
    own = World(FIRST_READERS).run(load, Own())
    runs = [Run(outcome=World(FIRST_READERS).run(load, rival), settings=rival) for rival in grid()]
    return Comparison(own=own, rivals=tuple(runs))


def _is_better(one: Outcome, other: Outcome) -> bool:
    """Whether an outcome is better on both counts."""
    return one.lag < other.lag and one.readers < other.readers


def _tuned(runs: Sequence[Run]) -> Run:
    return min(runs, key=lambda run: run.outcome.lag * run.outcome.readers)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--recorded", type=Path, help="lines of seconds,records per second")
    chosen = parser.parse_args()
    recordings = dict.fromkeys([RECORDING, *([chosen.recorded] if chosen.recorded else [])])
    shapes = [*SHAPES, *map(recorded, recordings)]
    found = {shape.name: compare(shape, chosen.seed) for shape in shapes}
    better = sum(comparison.is_better for comparison in found.values())
    rows = [comparison.row(name) for name, comparison in found.items()]
    sys.stdout.write(
        "\n".join(
            [f"Seed {chosen.seed}. {_HEAD}", *rows, "", f"better on both: {better} of {len(found)}"]
        )
    )
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
