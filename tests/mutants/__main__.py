"""``make mutants``: see the package."""

import argparse
import os
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings

from mutants.runner import MutantPlugin, Verdict
from mutants.sampling import STRATA, MutantSpec, sample

KNOWN: Final = Path(__file__).with_name("survivors.toml")
"""Survivors with the reason why no test can or need notice them."""

GOAL: Final = 0.9
"""Share of the mutants that tests must kill."""

_TESTS: Final = ("tests/unit", "tests/contract")


def main() -> int:
    """Sample, test and report; 0 if enough mutants were killed and each survivor has a reason."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", help="one part of the code base: " + ", ".join(STRATA))
    asked = parser.parse_args()
    specs = [s for s in sample(asked.count, asked.seed) if asked.only in (None, s.stratum)]
    print(f"mutants: {len(specs)} of seed {asked.seed}, {asked.jobs} at once", flush=True)  # noqa: T201
    report = _Report(len(specs))
    plugin = MutantPlugin(specs=specs, jobs=asked.jobs, told=report.note, say=report.say)
    settings.register_profile("mutants", derandomize=True, database=None, deadline=None)
    settings.load_profile("mutants")
    options = ["-o", "addopts=--import-mode=importlib --strict-markers", "-m", "not integration"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning", "-p", "no:cacheprovider", "-p", "no:terminal"]
    status = pytest.main([*options, *_TESTS], plugins=[plugin])
    if status not in (0, 5):
        return int(status)
    return report.verdict()


class _Report:
    """Progress, a table by part of the code base, and the survivors."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._by_stratum: dict[str, Counter[Verdict]] = {name: Counter() for name in STRATA}
        self._survivors: list[MutantSpec] = []

    def say(self, text: str) -> None:
        """Write a line of progress."""
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def note(self, spec: MutantSpec, verdict: Verdict) -> None:
        """Count one mutant; tell survivors at once."""
        self._done += 1
        self._by_stratum[spec.stratum][verdict] += 1
        if verdict is not Verdict.KILLED:
            self._survivors.append(spec)
            self.say(f"[{self._done}/{self._total}] {verdict.value}: {spec.file.name}:{spec.line} {spec.name}")
        elif self._done % 25 == 0:
            self.say(f"[{self._done}/{self._total}] …")

    def verdict(self) -> int:
        """Write the table and the last line; returns the exit status."""
        for name, counts in self._by_stratum.items():
            if total := counts.total():
                self.say(f"{name:12} {counts[Verdict.KILLED]:4} of {total:4} killed")
        reasons = tomllib.loads(KNOWN.read_text())["survivors"] if KNOWN.exists() else {}
        unexplained = [spec.name for spec in self._survivors if spec.name not in reasons]
        for name in unexplained:
            self.say(f"without a reason: {name}")
        killed = self._done - len(self._survivors)
        share = killed / self._done if self._done else 0.0
        is_good = share >= GOAL and not unexplained
        self.say(
            f"mutants: {'OK' if is_good else 'FAILED'} mutants={self._done} killed={killed} "
            f"survived={len(self._survivors)} share={share:.3f} unexplained={len(unexplained)}"
        )
        return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
