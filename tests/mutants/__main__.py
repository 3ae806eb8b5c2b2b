"""``make mutants``: see the package."""

import argparse
import os
import sys
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

from mutants.report import Report, done
from mutants.runner import MutantPlugin
from mutants.sampling import STRATA, MutantSpec, sample

_TESTS: Final = ("tests/unit", "tests/contract")
_OF_TOOLS: Final = ("chaos", "proof", "soak", "testbed", "hostile")
"""Folders of tests of our own tools, and of long walks through everything: they would notice little
more."""
_QUICK: Final = {
    "host": ("tests/unit/host", "tests/unit/journal"),
    "documents": ("tests/unit/documents",),
}
"""Parts of the code base that a few folders of fast tests cover nearly alone."""


def main() -> int:
    """Sample, test and report; 0 if enough mutants were killed and each survivor has a reason."""
    asked = _arguments()
    specs = list(_chosen(asked))
    sys.stdout.write(f"mutants: {len(specs)}, seed {asked.seed}, {asked.jobs} at once\n")
    sys.stdout.flush()
    report = Report(total=len(specs), log=asked.log, is_quick=asked.quick)
    plugin = MutantPlugin(
        specs=specs,
        jobs=asked.jobs,
        note=report.note,
        say=report.say,
        store=asked.baseline,
        slowest=asked.slowest,
        budget=asked.budget,
    )
    options = ["-o", "addopts=--import-mode=importlib --strict-markers", "-m", "not integration"]
    options += [
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:terminal",
    ]
    options += [f"--ignore=tests/unit/{name}" for name in _OF_TOOLS]
    status = pytest.main([*options, *(asked.tests or _TESTS)], plugins=[plugin])
    if status not in (0, 5):
        return int(status)
    return report.verdict()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--only", nargs="*", default=(), help="parts of the code base: " + ", ".join(STRATA)
    )
    parser.add_argument("--name", default="", help="only mutants whose name contains this")
    parser.add_argument(
        "--log", type=Path, help="file for outcomes; mutants that it names are not tested again"
    )
    parser.add_argument(
        "--baseline", type=Path, help="file that keeps what tests execute, for the next campaign"
    )
    parser.add_argument(
        "--slowest", type=float, default=60, help="seconds of a test, beyond which it is not used"
    )
    parser.add_argument(
        "--budget",
        type=float,
        default=300,
        help="seconds of processor time for the tests of one mutant, as long as their lines are"
        " recorded: about three times what they take otherwise",
    )
    parser.add_argument(
        "--again", type=Path, help="log whose survivors are tested, instead of a sample"
    )
    parser.add_argument("--tests", nargs="*", help="folders of tests, instead of all unit tests")
    parser.add_argument(
        "--quick", action="store_true", help=f"only {', '.join(_QUICK)}, by their own fast tests"
    )
    asked = parser.parse_args()
    if asked.quick:
        asked.only, asked.tests = tuple(_QUICK), tuple(chain.from_iterable(_QUICK.values()))
        asked.count, asked.slowest = 40, 2.0
    return asked


def _chosen(asked: argparse.Namespace) -> list[MutantSpec]:
    if asked.again is not None:
        names = {name for name, is_killed in done(asked.again).items() if not is_killed}
        return [spec for spec in sample(sys.maxsize, asked.seed) if spec.name in names]
    skipped = done(asked.log)
    specs = sample(asked.count, asked.seed, asked.only)
    return [spec for spec in specs if asked.name in spec.name and spec.name not in skipped]


if __name__ == "__main__":
    sys.exit(main())
