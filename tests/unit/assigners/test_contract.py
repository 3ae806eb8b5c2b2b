"""Wrong questions to a policy and wrong answers of it are rejected, and name the split."""

import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source.assigners import (
    AssignerIdentity,
    Placement,
    RoundRobinAssigner,
    SplitAssigner,
    place,
)
from balanced_source.errors import ContractViolationError

A: SplitId = ("c", "t", 0)
B: SplitId = ("c", "t", 1)
C: SplitId = ("c", "t", 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedAssigner(SplitAssigner):
    """Gives the same answer to each question."""

    answer: dict[SplitId, int] = field(default_factory=dict)

    @property
    def identity(self) -> AssignerIdentity:
        return AssignerIdentity(name="Fixed")

    def place(self, placement: Placement) -> dict[SplitId, int]:
        return self.answer


def question(**changes: Any) -> Placement:
    return Placement(**{"parallelism": 2, "owners": {A: 0}, "pending": [B], **changes})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (question(parallelism=0), "parallelism must be at least 1, not 0"),
        (question(owners={C: 1, A: 2}), f"{A!r} is owned by 2, outside [0, 2)"),
        (question(owners={C: 0, A: 2}), f"{A!r} is owned by 2, outside [0, 2)"),
        (question(owners={C: 1, A: -1}), f"{A!r} is owned by -1, outside [0, 2)"),
        (question(pending=[C, A]), f"{A!r} is pending and owned at once"),
        (question(weights={B: 1.0, A: -0.5}), f"{A!r} weighs -0.5"),
        (question(weights={B: 1.0, A: float("inf")}), f"{A!r} weighs inf"),
        (question(weights={B: 1.0, A: float("nan")}), f"{A!r} weighs nan"),
    ],
)
def test_a_question_that_makes_no_sense_is_rejected(wrong: Placement, message: str) -> None:
    with pytest.raises(ContractViolationError, match=re.escape(message)):
        place(RoundRobinAssigner(), wrong)


@pytest.mark.parametrize("weights", [{}, {A: 0.0}, {A: 0.0, B: 3.5}])
def test_any_finite_weight_from_zero_on_is_accepted(weights: dict[SplitId, float]) -> None:
    assert place(FixedAssigner(answer={B: 1}), question(weights=weights)) == {B: 1}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({}, f"FixedAssigner left split {B!r} without an owner"),
        ({B: 2}, f"FixedAssigner gave split {B!r} to 2, outside [0, 2)"),
        ({B: -1}, f"FixedAssigner gave split {B!r} to -1, outside [0, 2)"),
        ({A: 0, B: 2}, f"FixedAssigner gave split {B!r} to 2, outside [0, 2)"),
        ({A: 1, B: -1}, f"FixedAssigner gave split {B!r} to -1, outside [0, 2)"),
        ({B: 1, A: 1}, f"FixedAssigner moved split {A!r} although nothing may move"),
    ],
)
def test_an_answer_that_breaks_the_contract_is_rejected(
    answer: dict[SplitId, int], message: str
) -> None:
    with pytest.raises(ContractViolationError, match=re.escape(message)):
        place(FixedAssigner(answer=answer), question())


def test_of_several_splits_the_wrong_one_is_named() -> None:
    answer = FixedAssigner(answer={C: 1, B: 2, A: 0})

    with pytest.raises(ContractViolationError, match=re.escape(f"gave split {B!r} to 2")):
        place(answer, question(owners={}, pending=[A, B, C]))
    with pytest.raises(ContractViolationError, match=re.escape(f"left split {B!r} without")):
        place(FixedAssigner(answer={C: 1, A: 0}), question(owners={}, pending=[A, B, C]))


def test_splits_with_an_owner_may_move_when_the_question_allows_it() -> None:
    assert place(FixedAssigner(answer={B: 1, A: 1}), question(may_move=True)) == {A: 1, B: 1}
