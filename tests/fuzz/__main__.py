"""``python -m fuzz``: hands random input to the product.

Fails unless each ends in a result or in a sentence.
"""

import logging
import sys
import warnings
from typing import Annotated

import structlog
import typer

from fuzz.campaign import BATCH, Batch, batches, run
from fuzz.judge import Judge

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    inputs: Annotated[int, typer.Option(help="How many, of all kinds together.")] = 10_000,
    seed: Annotated[int, typer.Option(help="All batches follow from it.")] = 1,
    kind: Annotated[str, typer.Option(help="Only this kind.")] = "",
    batch: Annotated[int, typer.Option(help="Only the batch with this seed; needs --kind.")] = -1,
) -> None:
    """Fuzz the product."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    warnings.simplefilter("ignore")
    judge = Judge()
    found = (
        [Batch(kind=kind, seed=batch, size=BATCH)] if batch >= 0 else list(batches(inputs, seed))
    )
    for number, each in enumerate(b for b in found if kind in ("", b.kind)):
        before = len(judge.findings)
        run(each, judge)
        state = "ok" if len(judge.findings) == before else "FOUND"
        sys.stdout.write(
            f"{number + 1:>3}  {each.kind:<10} seed {each.seed:<10}  {judge.inputs:>6} inputs "
            f" {state}\n"
        )
        sys.stdout.flush()
    for finding in judge.findings:
        sys.stdout.write(f"\n{finding}\n")
    counts = f"inputs={judge.inputs} tracebacks={judge.tracebacks} silent={judge.silent}"
    sys.stdout.write(
        f"refused in words: {judge.refused}\n"
        f"fuzz: {'FAILED' if judge.findings else 'OK'} {counts}\n"
    )
    sys.exit(1 if judge.findings else 0)


if __name__ == "__main__":
    app()
