"""``python -m chaos``.

Runs schedules of faults, and ends with one line that says what came of them.
"""

import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from balanced_source_spark.kafka import native
from chaos.light.brokers import NODES, Brokers
from chaos.light.files import run_files
from chaos.light.hybrid import run_hybrid
from chaos.light.losses import KINDS, RARE
from chaos.light.run import NOTHING, Outcome, run
from chaos.light.streams import run_stream
from chaos.light.zygote import Zygote
from chaos.world import Schedule, draw
from testbed.builds import Builder
from testbed.errors import TestbedError
from testbed.kinesis import ENVIRONMENT as KINESIS
from testbed.kinesis import kinesis_server
from testbed.progress import Progress

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
FULL_FAULTS: Final = 12
"""Faults per schedule of the full engine."""

console = Console(stderr=True, highlight=False, soft_wrap=True)


@app.command()
def main(
    *,
    light: Annotated[int, typer.Option(help="Schedules of the light engine.")] = 16,
    files: Annotated[int, typer.Option(help="Schedules of the light engine over files.")] = 4,
    streams: Annotated[int, typer.Option(help="Schedules over a Kinesis stream.")] = 2,
    hybrids: Annotated[int, typer.Option(help="Schedules over files, then Kafka.")] = 2,
    full: Annotated[int, typer.Option(help="Schedules of the full engine.")] = 4,
    sources: Annotated[int, typer.Option(help="Sources on the stack of the full engine.")] = 2,
    seed: Annotated[int, typer.Option(help="Of the first schedule; the others count up.")] = 1,
    faults: Annotated[int, typer.Option(help="Per schedule.")] = 18,
    nodes: Annotated[int, typer.Option(help="Brokers of the largest cluster.")] = 3,
    lanes: Annotated[int, typer.Option(help="Schedules of the light engine at once.")] = 4,
    only: Annotated[
        str, typer.Option(help="Kinds of faults, separated by commas; all by default.")
    ] = "",
    folder: Annotated[
        Path | None, typer.Option(help="Keeps everything here; a temporary folder by default.")
    ] = None,
) -> None:
    """Run schedules; exit code 1 when anything was lost, duplicated or stuck."""
    run_dir = folder or Path(tempfile.mkdtemp(prefix="balanced-source-chaos-"))
    program = Builder(progress=Progress(console)).ensure("linearisable")["linearisable"]
    schedules = [_draw(number, only, faults) for number in range(seed, seed + light)]
    with Brokers(run_dir / "brokers", Progress(console), NODES | {"main": nodes}) as brokers:
        # both at once: while one waits for a JVM the other one has the machine, and their faults
        # overlap
        with ThreadPoolExecutor(1, thread_name_prefix="light") as side:
            lights = side.submit(_run_light, schedules, brokers, run_dir, program, lanes=lanes)
            fulls = [
                *_run_full(range(seed, seed + full), brokers, run_dir, program, sources=sources)
            ]
            outcomes = [*lights.result(), *fulls]
        outcomes += _run_hybrids(range(seed, seed + hybrids), run_dir, brokers)
        console.print(f"disturbances of brokers: {dict(brokers.counts)}", markup=False)
    outcomes += _run_files(range(seed, seed + files), run_dir)
    outcomes += _run_streams(range(seed, seed + streams), run_dir)
    is_ok = all(outcome.is_ok for outcome in outcomes)
    if is_ok and folder is None:
        shutil.rmtree(run_dir, ignore_errors=True)
    else:
        console.print(f"everything is in {run_dir}", markup=False)
    sys.stdout.write(_summary(outcomes, is_ok=is_ok) + "\n")
    raise typer.Exit(0 if is_ok else 1)


def _draw(seed: int, only: str, count: int) -> Schedule:
    natives = native.is_available()
    if only:
        return draw(seed, natives=natives, kinds=tuple(only.split(",")), count=count)
    return draw(seed, natives=natives, kinds=KINDS, count=count, rare=RARE)


def _run_light(
    schedules: list[Schedule], brokers: Brokers, run_dir: Path, program: Path, *, lanes: int
) -> list[Outcome]:
    """Run schedules, several at once: faults of brokers are faults of all of them."""

    def one(schedule: Schedule) -> Outcome:
        seed = schedule.world.seed
        console.print(f"[light {seed}] {schedule.world}", markup=False)
        try:
            outcome = run(
                schedule,
                brokers,
                run_dir / str(seed),
                zygote=zygote,
                program=program,
                tell=_teller(f"light {seed}"),
            )
        except Exception:  # noqa: BLE001
            # A bug of the engine fails its schedule, and the others continue
            outcome = _given_up(traceback.format_exc())
        _tell(outcome, seed, "light")
        return outcome

    if not schedules:
        return []
    with Zygote() as zygote, ThreadPoolExecutor(lanes, thread_name_prefix="lane") as pool:
        return list(pool.map(one, schedules))


def _run_files(seeds: range, run_dir: Path) -> Iterator[Outcome]:
    if not seeds:
        return
    with Zygote() as zygote:
        yield from _in_turn("files", seeds, run_dir, partial(run_files, zygote=zygote))


def _run_streams(seeds: range, run_dir: Path) -> Iterator[Outcome]:
    if not seeds:
        return
    os.environ.update(KINESIS)  # the standard chain of drivers and tasks
    with kinesis_server() as endpoint, Zygote() as zygote:
        one = partial(run_stream, endpoint=endpoint, zygote=zygote)
        yield from _in_turn("stream", seeds, run_dir, one)


def _run_hybrids(seeds: range, run_dir: Path, brokers: Brokers) -> Iterator[Outcome]:
    if not seeds:
        return
    with Zygote() as zygote:
        one = partial(run_hybrid, brokers=brokers, zygote=zygote)
        yield from _in_turn("hybrid", seeds, run_dir, one)


def _in_turn(
    kind: str, seeds: range, run_dir: Path, one: Callable[..., Outcome]
) -> Iterator[Outcome]:
    """Run schedules by themselves, one after another."""
    for seed in seeds:
        folder, tell = run_dir / f"{kind}-{seed}", _teller(f"{kind} {seed}")
        try:
            outcome = one(seed, folder, tell=tell)
        except Exception:  # noqa: BLE001 - see `_run_light`
            outcome = _given_up(traceback.format_exc())
        _tell(outcome, seed, kind)
        yield outcome


def _run_full(
    seeds: range, brokers: Brokers, run_dir: Path, program: Path, *, sources: int
) -> Iterator[Outcome]:
    if not seeds:
        return
    from chaos.full.run import run as run_full
    from chaos.full.stack import PLANS, Stack

    try:
        with Stack(run_dir / "full", brokers, Progress(console), PLANS[:sources]) as stack:
            for seed in seeds:
                outcome = run_full(
                    stack, seed, count=FULL_FAULTS, program=program, tell=_teller(f"full {seed}")
                )
                _tell(outcome, seed, "full")
                yield outcome
    except TestbedError as error:  # what the light engine finds meanwhile counts all the same
        outcome = _given_up(str(error))
        _tell(outcome, seeds.start, "full")
        yield outcome


def _given_up(why: str) -> Outcome:
    return Outcome(
        verdict=NOTHING, is_stuck=False, seconds=0, failures=(), user_actions=(), given_up=why
    )


def _teller(name: str) -> Callable[[str], None]:
    began = time.monotonic()
    return lambda text: console.print(
        f"[{name}] {time.monotonic() - began:5.1f} s  {text}", markup=False
    )


def _tell(outcome: Outcome, seed: int, engine: str) -> None:
    words = "OK" if outcome.is_ok else "FAILED"
    numbers = {k: v for k, v in outcome.verdict.items() if isinstance(v, int) and k != "is_ok"}
    lines = [f"{words} in {outcome.seconds:.0f} s: {json.dumps(numbers)}"]
    lines += [f"  {line[:300]}" for line in (*outcome.failures, *outcome.user_actions)]
    lines += [f"  {line}" for line in outcome.verdict["examples"]]
    if problem := outcome.verdict["epochs"]:
        lines.append(f"  {problem}")
    if outcome.given_up is not None:
        lines.append(f"  given up, the testbed failed: {outcome.given_up}")
    if outcome.is_stuck:
        lines.append("  stuck: not everything arrived")
    text = "\n".join(f"[{engine} {seed}] {line}" for line in lines)
    console.print(text, style=None if outcome.is_ok else "red", markup=False)


def _summary(outcomes: list[Outcome], *, is_ok: bool) -> str:
    def total(name: str) -> int:
        values: list[Any] = [outcome.verdict[name] for outcome in outcomes]
        return sum(values)

    wrong = {name: total(name) for name in ("unexpected", "disordered", "replayed")}
    wrong["epochs"] = sum(outcome.verdict["epochs"] is not None for outcome in outcomes)
    wrong["given_up"] = sum(outcome.given_up is not None for outcome in outcomes)
    more = "".join(f" {name}={count}" for name, count in wrong.items() if count)
    return (
        f"chaos: {'OK' if is_ok else 'FAILED'} schedules={len(outcomes)} records={total('records')}"
        f" lost={total('lost')} duplicated={total('duplicated')}"
        f" stuck={sum(o.is_stuck for o in outcomes)}{more}"
    )


if __name__ == "__main__":
    app()
