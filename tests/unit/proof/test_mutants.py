"""The search finds bugs: all that were put into the code on purpose."""

import gc

import pytest

from proof.explorer import Explorer
from proof.mutants import MUTANTS
from proof.mutation import Mutant
from proof.shell import EMPTY, offset_of

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "mutant", [m for m in MUTANTS if not (m.is_slow or m.lives)], ids=lambda mutant: mutant.name
)
def test_a_seeded_bug_is_found(mutant: Mutant) -> None:
    report = mutant.hunted(limit=60_000, shrink=0.0)

    assert mutant.is_found_by(report), (
        f"{mutant.rule} should be broken; found: {report.broken or 'nothing'}"
    )
    assert report.trace


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_seeded_bug_still_applies_to_the_code(mutant: Mutant) -> None:
    with mutant.applied():
        pass


def test_each_rule_and_each_known_defect_is_broken_once() -> None:
    broken = {mutant.rule.split(",")[0] for mutant in MUTANTS}

    assert {name for mutant in MUTANTS for name in mutant.repeats} == {
        f"X{number}" for number in range(1, 12)
    }
    assert broken >= {*(f"rule {number}" for number in (2, 3, 4, 5, 6, 7, 9, 10)), "liveness"}


def test_a_mutant_that_no_longer_applies_is_an_error() -> None:
    outdated = Mutant(
        name="x",
        rule="",
        where="host.planning:plan",
        old="no such text",
        new="",
        setting=MUTANTS[0].setting,
    )

    with pytest.raises(ValueError, match="0 times"), outdated.applied():
        pass


def test_the_code_is_restored_after_a_mutant() -> None:
    mutant = MUTANTS[0]
    with mutant.applied():
        pass

    assert Explorer(mutant.setting).run().problem is None


def test_what_sound_code_has_decoded_is_forgotten_with_a_mutant_and_after_it() -> None:
    sound = offset_of(EMPTY)
    gc.freeze()  # as a worker of Spark does
    mutant = next(m for m in MUTANTS if m.name == "a logged offset is read without topic ids")

    with mutant.applied():
        broken = offset_of(EMPTY)

    assert broken is not sound
    assert offset_of(EMPTY) is not broken
