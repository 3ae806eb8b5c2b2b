"""Batches of inputs, each with a seed of its own."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from fuzz import brokers, commands, documents, manifests, operators, option_sets, paths
from fuzz.judge import FindingError, Judge, TracebackError

BATCH: Final = 250
"""Inputs per seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of input.

    Attributes:
        cases: how one is drawn.
        check: what is done with it.
        share: parts of all inputs that are of this kind.
    """

    cases: st.SearchStrategy[Any]
    check: Callable[[Any, Judge], None]
    share: int


KINDS: Final[Mapping[str, Kind]] = {
    "manifests": Kind(cases=manifests.cases, check=manifests.check, share=30),
    "documents": Kind(cases=documents.cases, check=documents.check, share=30),
    "brokers": Kind(cases=brokers.cases, check=brokers.check, share=15),
    "paths": Kind(cases=paths.cases, check=paths.check, share=5),
    "options": Kind(cases=option_sets.cases, check=option_sets.check, share=14),
    "commands": Kind(cases=commands.cases, check=commands.check, share=5),
    "operators": Kind(cases=operators.cases, check=operators.check, share=1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Inputs of one kind that follow from one seed."""

    kind: str
    seed: int
    size: int


def batches(inputs: int, first: int) -> Iterator[Batch]:
    """Yields batches with so many inputs together, the kinds by their shares."""
    shares = sum(kind.share for kind in KINDS.values())
    for name, kind in KINDS.items():
        left = -(-inputs * kind.share // shares)
        for number in range(-(-left // BATCH)):
            text = f"{first}/{name}/{number}".encode()
            of_batch = int.from_bytes(hashlib.sha256(text).digest()[:4], "big")
            yield Batch(kind=name, seed=of_batch, size=min(BATCH, left - number * BATCH))


def run(batch: Batch, judge: Judge) -> None:
    """Draws the inputs of a batch and checks each of them.

    What is found goes to the judge, made as small as can be.
    """
    kind = KINDS[batch.kind]
    is_counting = True

    @seed(batch.seed)
    @settings(
        max_examples=batch.size,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(kind.cases)
    def every(case: Any) -> None:
        nonlocal is_counting
        judge.inputs += is_counting
        try:
            kind.check(case, judge)
        except BaseException:
            is_counting = False  # what follows makes the finding smaller
            raise

    try:
        every()
    except FindingError as found:
        judge.tracebacks += isinstance(found, TracebackError)
        judge.silent += not isinstance(found, TracebackError)
        judge.findings.append(f"--kind {batch.kind} --batch {batch.seed}: {found}")
