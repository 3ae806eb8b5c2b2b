"""Runs schedules on the full stack.

Faults, a time of peace in which everything must arrive, and the checker.
"""

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaException

from chaos.checker import broker_log
from chaos.children import judge
from chaos.full.faults import EXPECTED, FAULTS, KINDS
from chaos.full.source import Source
from chaos.full.stack import Stack
from chaos.light.brokers import Undo
from chaos.light.run import NOTHING, Outcome
from testbed.errors import DeadlineError, TestbedError
from testbed.waiting import wait_until

PATIENCE: Final = 600.0
"""Seconds without any progress after which a schedule is stuck: on a busy machine a driver needs
minutes to start."""

_BATCH_EVERY: Final = 3
"""Every third schedule starts a source that ends."""

Tell = Callable[[str], None]


def run(stack: Stack, seed: int, *, count: int, program: Path, tell: Tell) -> Outcome:
    """Disturb the stack by a seed, and check all sources.

    Args:
        stack: that runs.
        seed: decides the faults.
        count: of faults.
        program: see `checker.epochs`.
        tell: gets a line per fault.
    """
    began = time.monotonic()
    verdict, stuck, given_up = dict(NOTHING), [], None
    stack.user_actions.clear()
    try:
        stack.resume_load()
        if seed % _BATCH_EVERY == 0:
            stack.start_batch(seed)
        _disturb(stack, random.Random(f"full-{seed}"), count, tell)
        tell("heal and read the rest")
        stack.heal()
        stuck = _wait_for_the_end(stack)
        verdict = _joined([_check(stack, source, program) for source in stack.sources])
        stack.counted, verdict["records"] = verdict["streamed"], verdict["records"] - stack.counted
    except (TestbedError, KafkaException) as error:
        given_up = f"{type(error).__name__}: {error}"
    if not stuck:
        # The next schedule produces again, and what is behind the stop offsets is never read.
        given_up = _ended_batch(stack) or given_up
    return Outcome(
        verdict=verdict,
        is_stuck=bool(stuck),
        seconds=time.monotonic() - began,
        failures=tuple(stuck),
        user_actions=tuple(stack.user_actions),
        given_up=given_up,
    )


def _ended_batch(stack: Stack) -> str | None:
    """Delete the source that ends; returns why that failed."""
    try:
        stack.end_batch()
    except (TestbedError, KafkaException) as error:
        return f"{type(error).__name__}: {error}"
    return None


def _disturb(stack: Stack, dice: random.Random, count: int, tell: Tell) -> None:
    stack.tell = tell
    for _ in range(count):
        kind, number = dice.choice(KINDS), dice.randrange(2**30)
        pause, lasts = dice.uniform(1, 8), dice.uniform(2, 15)
        _pass(stack, time.monotonic() + pause)
        tell(kind)
        try:
            undo = _act(stack, kind, number)
        except EXPECTED as error:
            tell(f"skipped: {str(error)[:200]}")
            continue
        if undo is not None:
            stack.undos.append((time.monotonic() + lasts, undo))
    while stack.undos:
        _pass(stack, max(at for at, _ in stack.undos))


def _act(stack: Stack, kind: str, number: int) -> Undo | None:
    if not stack.is_api_down:
        for source in stack.sources:
            source.keep_copy()
    return FAULTS[kind](stack, random.Random(number))


def _pass(stack: Stack, due: float) -> None:
    while True:
        stack.tend()
        if time.monotonic() >= due:
            return
        time.sleep(0.1)


def _wait_for_the_end(stack: Stack) -> list[str]:
    """Wait until all sources have delivered everything; returns the ones that are stuck."""
    ends = {source.name: stack.ends(source) for source in stack.sources}
    while True:
        before = [source.committed() for source in stack.sources]

        def moved(before: Any = before) -> bool:
            stack.tend()
            now = [source.committed() for source in stack.sources]
            return now != before or not _behind(stack, ends)

        try:
            wait_until(moved, PATIENCE, "progress", interval=1)
        except DeadlineError:
            return [
                f"{name} is stuck: {json.dumps(_status(stack, name))}"
                for name in _behind(stack, ends)
            ]
        if not _behind(stack, ends):
            return []


def _behind(stack: Stack, ends: dict[str, dict[Any, Any]]) -> list[str]:
    found = []
    for source in stack.sources:
        committed = source.committed()
        if not all(
            committed.get(s, ("", -1))[0] == i and committed[s][1] >= to
            for s, (i, to) in ends[source.name].items()
        ) or (source.plan.is_bounded and not source.is_finished):
            found.append(source.name)
    return found


def _status(stack: Stack, name: str) -> Any:
    source = next(one for one in stack.sources if one.name == name)
    return source.status.get("conditions", [])


def _check(stack: Stack, source: Source, program: Path) -> dict[str, Any]:
    final = source.folder / "dumps" / "final.csv"
    final.unlink(missing_ok=True)
    with stack.steady(*source.loads):
        for name, load in source.loads.items():
            broker_log.dump(final, name, stack.brokers[name].bootstrap, load.topics)
    source.write_logs(stack.operator_log())
    found = judge(source.folder, program)
    return {**found, "streamed": 0 if source.plan.is_bounded else found["records"]}


def _joined(verdicts: list[dict[str, Any]]) -> dict[str, Any]:
    names = (
        "records",
        "streamed",
        "lost",
        "duplicated",
        "unexpected",
        "disordered",
        "replayed",
        "excused",
    )
    return {
        **{name: sum(verdict[name] for verdict in verdicts) for name in names},
        "examples": [example for verdict in verdicts for example in verdict["examples"]],
        "epochs": next((verdict["epochs"] for verdict in verdicts if verdict["epochs"]), None),
        "is_ok": all(verdict["is_ok"] for verdict in verdicts),
    }
