"""Progress, a table by part of the code base, and the survivors."""

import json
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mutants.runner import Outcome, Verdict

KNOWN: Final = Path(__file__).with_name("survivors.toml")
"""Survivors, and why no test can or need notice them."""

GOAL: Final = 0.9
"""Share of the mutants that tests must kill."""

QUICK_GOAL: Final = 0.75
"""The same of a quick campaign, which leaves slow tests and those of other folders out, and takes
few mutants."""

_EACH: Final = 25
"""Mutants between two lines of progress."""


def done(log: Path | None) -> Mapping[str, bool]:
    """Return the names of the mutants in a log, and whether they were killed."""
    if log is None or not log.exists():
        return {}
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    return {entry["name"]: entry["verdict"] == Verdict.KILLED.value for entry in entries}


class Report:
    """Collects the outcomes of a campaign.

    Args:
        total: number of mutants.
        log: file that gets a line of JSON for each outcome; None for none.
        is_quick: survivors need no reasons then, and fewer mutants must be killed.
    """

    def __init__(self, total: int, *, log: Path | None = None, is_quick: bool = False) -> None:
        self._total = total
        self._is_quick = is_quick
        self._log = log
        self._by_stratum: dict[str, Counter[Verdict]] = defaultdict(Counter)
        self._survivors: list[str] = []

    def say(self, text: str) -> None:
        """Write a line of progress."""
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def note(self, outcome: Outcome) -> None:
        """Count one mutant; print a survivor at once."""
        self._by_stratum[outcome.spec.stratum][outcome.verdict] += 1
        place = f"[{self._done}/{self._total}]"
        if outcome.verdict is not Verdict.KILLED:
            self._survivors.append(outcome.spec.name)
            self.say(f"{place} {outcome.verdict.value}: {outcome.spec.name} {outcome.by}".rstrip())
        elif self._done % _EACH == 0:
            self.say(f"{place} …")
        if self._log is not None:
            entry = {
                "name": outcome.spec.name,
                "stratum": outcome.spec.stratum,
                "verdict": outcome.verdict.value,
                "by": outcome.by,
                "tests": outcome.tests,
                "seconds": round(outcome.seconds, 2),
            }
            with self._log.open("a") as file:
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")

    @property
    def _done(self) -> int:
        return sum(counts.total() for counts in self._by_stratum.values())

    def verdict(self) -> int:
        """Write the table and the last line; return the exit status."""
        for name, counts in self._by_stratum.items():
            self.say(f"{name:12} {counts[Verdict.KILLED]:4} of {counts.total():4} killed")
        reasons: Mapping[str, str] = (
            tomllib.loads(KNOWN.read_text())["survivors"] if KNOWN.exists() else {}
        )
        unexplained = [name for name in self._survivors if name not in reasons]
        for name in () if self._is_quick else unexplained:
            self.say(f"without a reason: {name}")
        killed = self._done - len(self._survivors)
        share = killed / max(1, self._done)
        is_good = share >= QUICK_GOAL if self._is_quick else share >= GOAL and not unexplained
        self.say(
            f"mutants: {'OK' if is_good else 'FAILED'} mutants={self._done} killed={killed} "
            f"survived={len(self._survivors)} share={share:.3f} unexplained={len(unexplained)}"
        )
        return 0 if is_good else 1
