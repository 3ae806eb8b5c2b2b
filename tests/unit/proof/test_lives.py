"""Random lives of worlds that are too large to visit whole; `make proof` lives thousands."""

import pytest

from proof.closures import LIVES
from proof.lives import live, relive
from proof.mutants import MUTANTS
from proof.values import Setting

pytestmark = pytest.mark.unit

EACH = 10


@pytest.mark.parametrize("setting", LIVES, ids=lambda setting: setting.name)
def test_all_rules_hold_in_random_lives(setting: Setting) -> None:
    broken = [fate for fate in live(setting, range(EACH)) if fate.problem is not None]

    assert not broken, str(relive(broken[0], 20.0))


def test_a_seed_gives_the_same_life() -> None:
    one, other = (next(live(LIVES[0], [7])) for _ in range(2))

    assert one.trace == other.trace


def test_a_life_that_breaks_a_rule_is_summarised() -> None:
    mutant = next(m for m in MUTANTS if m.name == "one blind discovery removes splits")
    with mutant.applied():
        broken = next(fate for fate in live(mutant.setting, range(500)) if fate.problem is not None)
        short = relive(broken, 20.0)

    assert short.problem is not None
    assert short.problem.split(":")[0] == (broken.problem or "").split(":")[0]
    assert len(short.trace) <= len(broken.trace)
    assert str(short).count("\n") == len(short.trace)
