"""Requests, answers, drivers and operators get lost at every step.

Each number is delivered once, and reading ends.
"""

import pytest

from proof import pull


@pytest.mark.parametrize("name", pull.SMALL)
def test_all_rules_hold_in_every_interleaving(name: str) -> None:
    found = pull.closed(name)

    assert found.problem is None, pull.told(found)
    assert 100 < found.worlds < pull.LIMIT


@pytest.mark.parametrize("name", pull.LIVES)
def test_all_rules_hold_in_random_lives(name: str) -> None:
    found = pull.lived(name, 25)

    assert found.problem is None, pull.told(found)


@pytest.mark.parametrize("name", pull.BUGS)
def test_each_seeded_bug_breaks_a_rule(name: str) -> None:
    """Or the search would prove nothing."""
    assert pull.BUGS[name].breaks in pull.hunted(name)


def test_the_code_is_restored_after_a_mutant() -> None:
    bug = pull.BUGS["splits that come back wait for a request"]
    before = getattr(bug.place, bug.name)

    with bug.applied():
        assert getattr(bug.place, bug.name) is not before

    assert getattr(bug.place, bug.name) is before
