"""Runs schedules on the full stack: faults, a time of peace in which everything must arrive, and the checker."""

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from chaos.checker import broker_log
from chaos.children import judge
from chaos.full.faults import EXPECTED, FAULTS, KINDS, Undo
from chaos.full.source import Source
from chaos.full.stack import Stack
from chaos.light.run import Outcome
from testbed.errors import DeadlineError
from testbed.waiting import wait_until

PATIENCE: Final = 180.0
"""Seconds without any progress after which a schedule is stuck: a driver needs a minute to come back."""

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
    stack.resume_load()
    _disturb(stack, random.Random(f"full-{seed}"), count, tell)
    tell("heal and read the rest")
    stack.heal()
    stuck = _wait_for_the_end(stack)
    verdicts = [_check(stack, source, program) for source in stack.sources]
    verdict = _joined(verdicts)
    stack.counted, verdict["records"] = verdict["records"], verdict["records"] - stack.counted
    return Outcome(
        verdict=verdict,
        is_stuck=bool(stuck),
        seconds=time.monotonic() - began,
        failures=tuple(stuck),
        user_actions=(),
    )


def _disturb(stack: Stack, dice: random.Random, count: int, tell: Tell) -> None:
    undos: list[tuple[float, Undo]] = []
    for _ in range(count):
        kind, number = dice.choice(KINDS), dice.randrange(2**30)
        pause, lasts = dice.uniform(1, 8), dice.uniform(2, 15)
        _pass(time.monotonic() + pause, undos, tell)
        tell(kind)
        try:
            undo = _act(stack, kind, number)
        except EXPECTED as error:
            tell(f"  skipped: {str(error)[:200]}")
            continue
        if undo is not None:
            undos.append((time.monotonic() + lasts, undo))
    _pass(max((at for at, _ in undos), default=0.0), undos, tell)


def _act(stack: Stack, kind: str, number: int) -> Undo | None:
    if not stack.is_api_down:
        for source in stack.sources:
            source.keep_copy()
    return FAULTS[kind](stack, random.Random(number))


def _pass(due: float, undos: list[tuple[float, Undo]], tell: Tell) -> None:
    while True:
        now = time.monotonic()
        for at, undo in [entry for entry in undos if entry[0] <= now]:
            undos.remove((at, undo))
            try:
                undo()
            except EXPECTED as error:  # such as an edit while the API server is down: once more, later
                tell(f"  undo later: {str(error)[:200]}")
                undos.append((now + 2, undo))
        if now >= due:
            return
        time.sleep(0.1)


def _wait_for_the_end(stack: Stack) -> list[str]:
    """Wait until all sources have delivered everything; returns the ones that are stuck."""
    ends = {source.name: _ends(stack, source) for source in stack.sources}
    while True:
        before = [source.committed() for source in stack.sources]

        def moved(before: Any = before) -> bool:
            now = [source.committed() for source in stack.sources]
            return now != before or not _behind(stack, ends)

        try:
            wait_until(moved, PATIENCE, "progress", interval=1)
        except DeadlineError:
            return [f"{name} is stuck: {json.dumps(_status(stack, name))}" for name in _behind(stack, ends)]
        if not _behind(stack, ends):
            return []


def _behind(stack: Stack, ends: dict[str, dict[Any, Any]]) -> list[str]:
    found = []
    for source in stack.sources:
        committed = source.committed()
        if not all(
            committed.get(s, ("", -1))[0] == i and committed[s][1] >= to for s, (i, to) in ends[source.name].items()
        ):
            found.append(source.name)
    return found


def _status(stack: Stack, name: str) -> Any:
    source = next(one for one in stack.sources if one.name == name)
    return source.status.get("conditions", [])


def _ends(stack: Stack, source: Source) -> dict[Any, Any]:
    found = {}
    for name, load in source.loads.items():
        ids = broker_log.topic_ids(stack.brokers[name].bootstrap, load.topics)
        for topic in load.topics:
            for partition, (_, end) in stack.brokers[name].admin.offsets(topic).items():
                found[name, topic, partition] = ids[topic], end
    return found


def _check(stack: Stack, source: Source, program: Path) -> dict[str, Any]:
    final = source.folder / "dumps" / "final.csv"
    final.unlink(missing_ok=True)
    for name, load in source.loads.items():
        broker_log.dump(final, name, stack.brokers[name].bootstrap, load.topics)
    source.write_logs(stack.operator_log())
    return judge(source.folder, program)


def _joined(verdicts: list[dict[str, Any]]) -> dict[str, Any]:
    names = ("records", "lost", "duplicated", "unexpected", "disordered", "replayed", "excused")
    return {
        **{name: sum(verdict[name] for verdict in verdicts) for name in names},
        "examples": [example for verdict in verdicts for example in verdict["examples"]],
        "epochs": next((verdict["epochs"] for verdict in verdicts if verdict["epochs"]), None),
        "is_ok": all(verdict["is_ok"] for verdict in verdicts),
    }
