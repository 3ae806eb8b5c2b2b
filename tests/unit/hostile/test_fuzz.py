"""A short part of `make fuzz`, always the same; the whole of it takes minutes."""

import pytest

from fuzz.campaign import Batch, run
from fuzz.judge import Judge

SIZES = {"manifests": 20, "documents": 30, "brokers": 30, "paths": 50, "options": 30}


@pytest.mark.parametrize("kind", SIZES)
def test_hostile_input_ends_in_a_result_or_a_sentence(kind: str) -> None:
    judge = Judge()

    run(Batch(kind=kind, seed=20260131, size=SIZES[kind]), judge)

    assert judge.findings == []
    assert judge.inputs > 0
