"""A pytest session that tests mutants instead of the code; see the package."""

import contextlib
import enum
import gc
import itertools
import os
import select
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, settings

from mutants.baseline import Baseline, observe
from mutants.exchange import Exchange
from mutants.forks import BROKEN, fork, limited, passes, wait
from mutants.sampling import MutantSpec

LIMIT: Final = 1200.0
"""Seconds of one mutant. One without a verdict by then counts as a survivor.

Several times the default budget of processor time, because a campaign may share its machine.
"""

EXAMPLES: Final = 25
"""Inputs of a property, unless its test sets a number of its own.

Fewer than in `make test`, which kills a bit less.
"""

FAILED, NEVER_ENDS = 1, 2
"""Exit statuses of a fork in which a test noticed the mutant."""


_HOW: Final = {FAILED: "failed", NEVER_ENDS: "never ends"}


class Verdict(enum.Enum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    NOT_EXECUTED = "not executed"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a mutant, and why.

    Attributes:
        spec: the mutant.
        verdict: what became of it.
        by: the test that killed it, and how; or why there is no verdict.
        tests: number of tests that execute the changed line.
        seconds: duration.
    """

    spec: MutantSpec
    verdict: Verdict
    by: str
    tests: int
    seconds: float


@dataclass
class _Running:
    """A mutant in its fork, and the file that its fork writes the number of the present test to."""

    spec: MutantSpec
    tests: Sequence[int]
    affordable: Sequence[int]
    present: Path
    errors: Path
    started: float = field(default_factory=time.monotonic)


@dataclass
class MutantPlugin:
    """Runs mutants in forks of the collected session.

    Attributes:
        specs: the mutants.
        jobs: how many run at once.
        note: gets each outcome.
        say: gets each line of progress.
        store: file that keeps the baseline for the next campaign; None for none.
        slowest: seconds of processor time of a test, beyond which it is not used.
        budget: seconds of processor time for the tests of a mutant, as the baseline knows them.
            One that survives these, while there are more tests, is unfinished.
    """

    specs: Sequence[MutantSpec]
    jobs: int
    note: Callable[[Outcome], None]
    say: Callable[[str], None]
    store: Path | None = None
    slowest: float = 60.0
    budget: float = 300.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Called by pytest before it imports tests, after tests/conftest.py chose a profile."""
        del session
        phases = (Phase.explicit, Phase.generate)  # a failing example need not become smaller
        checks = (HealthCheck.too_slow, HealthCheck.data_too_large)
        settings.register_profile(
            "mutants",
            max_examples=EXAMPLES,
            derandomize=True,
            database=None,
            deadline=None,
            phases=phases,
            suppress_health_check=checks,
        )
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Called by pytest once all tests are collected."""
        # All forks share it
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        with tempfile.TemporaryDirectory() as folder:
            self._campaign(session.items, Path(folder))
        return True

    def _campaign(self, items: Sequence[pytest.Item], folder: Path) -> None:
        started = time.monotonic()
        store = self.store or folder / "baseline"
        baseline = observe(items, store, self.slowest, jobs=self.jobs, say=self.say)
        self.say(f"baseline: {len(items)} tests in {time.monotonic() - started:.0f} s")
        for number in baseline.failed:
            self.say(
                "not used, because it is too slow or fails without any mutant:"
                f" {items[number].nodeid}"
            )
        exchange = Exchange(self.specs)
        gc.collect()
        gc.freeze()
        waiting, running, numbers = list(self.specs), dict[int, _Running](), itertools.count()
        while waiting or running:
            while waiting and len(running) < self.jobs:
                number, spec = next(numbers), waiting.pop(0)
                tests = baseline.of_lines(spec.file, spec.lines)
                mutant = _Running(
                    spec=spec,
                    tests=tests,
                    affordable=baseline.affordable(tests, self.budget),
                    present=folder / f"{number}.present",
                    errors=folder / f"{number}.errors",
                )
                running[_start(mutant, items, baseline, exchange)] = mutant
            waiting += self._reap(running, items, baseline, exchange)

    def _reap(
        self,
        running: dict[int, _Running],
        items: Sequence[pytest.Item],
        baseline: Baseline,
        exchange: Exchange,
    ) -> list[MutantSpec]:
        """Note what has ended.

        Return mutants to test again, without a test that fails without them too.
        """
        again: list[MutantSpec] = []
        for pid, mutant in list(running.items()):
            is_over = time.monotonic() - mutant.started > LIMIT
            if is_over:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
            done, status = os.waitpid(pid, 0 if is_over else os.WNOHANG)
            if not done:
                continue
            del running[pid]
            exit_code = os.waitstatus_to_exitcode(status)
            verdict, by = (Verdict.UNFINISHED, "") if is_over else _verdict(exit_code, mutant)
            if verdict is Verdict.KILLED:
                number = int(mutant.present.read_text())
                if not _is_confirmed(mutant, number, items, baseline, exchange):
                    baseline.exclude(number)
                    self.say(
                        "not used any more, because it fails alone without any mutant:"
                        f" {items[number].nodeid}"
                    )
                    again.append(mutant.spec)
                    continue
                by = (
                    f"{items[number].nodeid}"
                    f" {_HOW.get(exit_code, f'ended its process with {exit_code}')}"
                )
            seconds = time.monotonic() - mutant.started
            self.note(
                Outcome(
                    spec=mutant.spec,
                    verdict=verdict,
                    by=by,
                    tests=len(mutant.tests),
                    seconds=seconds,
                )
            )
        if running:
            select.select([], [], [], 0.01)
        return again


def _verdict(exit_code: int, mutant: _Running) -> tuple[Verdict, str]:
    if exit_code == BROKEN:
        return Verdict.UNFINISHED, mutant.errors.read_text().splitlines()[-1]
    if exit_code == 0 and len(mutant.affordable) < len(mutant.tests):
        return Verdict.UNFINISHED, f"after {len(mutant.affordable)} of {len(mutant.tests)} tests"
    if exit_code == 0:
        return (Verdict.SURVIVED if mutant.tests else Verdict.NOT_EXECUTED), ""
    return Verdict.KILLED, ""


def _is_confirmed(
    mutant: _Running,
    number: int,
    items: Sequence[pytest.Item],
    baseline: Baseline,
    exchange: Exchange,
) -> bool:
    """Whether the same test passes once the function is compiled again without the change."""
    control = fork(
        lambda: _test(
            [number], mutant.present, items, baseline, lambda: exchange.renew(mutant.spec)
        ),
        errors=mutant.errors,
    )
    return wait(control) == 0


def _start(
    mutant: _Running, items: Sequence[pytest.Item], baseline: Baseline, exchange: Exchange
) -> int:
    return fork(
        lambda: _test(
            mutant.affordable, mutant.present, items, baseline, lambda: exchange.apply(mutant.spec)
        ),
        errors=mutant.errors,
    )


def _test(
    numbers: Sequence[int],
    present: Path,
    items: Sequence[pytest.Item],
    baseline: Baseline,
    prepare: Callable[[], None],
) -> int:
    """Return 0 if all tests pass."""
    prepare()
    for number, following in zip(numbers, [*numbers[1:], None], strict=False):
        present.write_text(str(number))
        following_item = items[following] if following is not None else None
        with limited(
            cpu=5 + 3 * baseline.cpu(number),
            wall=60 + 10 * baseline.seconds(number),
            over=lambda: os._exit(NEVER_ENDS),
        ):
            try:
                if not passes(items[number], following_item):
                    return FAILED
            except KeyboardInterrupt:  # it would end a whole session of pytest
                return FAILED
    return 0
