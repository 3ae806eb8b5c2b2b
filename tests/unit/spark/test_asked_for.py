"""What a connector says of the splits that its readers have asked for is checked."""

from typing import Any

import pytest

from balanced_source.errors import ConnectorError
from balanced_source_spark.contract.checked_hooks import hooks_of
from balanced_source_spark.contract.hooks import PlannerHooks
from support.planner_context import CONTEXT

SPLIT = ("tape", 1)


def asked_for(answer: Any) -> Any:
    made = type("Hooks", (PlannerHooks,), {"ends": lambda *_: {}, "asked_for": lambda *_: answer})()
    half: Any = type("Half", (), {"hooks": lambda *_: made})()
    return hooks_of(half, CONTEXT, connector="tapes").asked_for([SPLIT])


@pytest.mark.parametrize("answer", [None, (), [SPLIT], frozenset({SPLIT})])
def test_right_answers_are_passed_on(answer: Any) -> None:
    assert asked_for(answer) == answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (True, "it returned a bool, and a list of splits was expected"),
        ("tape", "it returned a str, and a list of splits was expected"),
        ([("tape", 2)], "it returned .*, which it was not asked about"),
    ],
)
def test_an_answer_about_something_else_is_named(answer: Any, expected: str) -> None:
    with pytest.raises(ConnectorError, match=f"'tapes' .* failed in asked_for: .*{expected}"):
        asked_for(answer)
