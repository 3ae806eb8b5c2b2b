"""Random walks of `make walks`: some seeds of each world, and a seeded bug that they must find."""

from dataclasses import replace

import pytest

from balanced_source_operator.runtime.hand_over import Roll
from walks.actions.text import steps_of, text_of
from walks.campaign import judged, script_of
from walks.gaps import Gaps
from walks.play import play, shorter
from walks.rules import Rule
from walks.worlds import WORLDS, draw

REST = 300.0
"""Seconds at rest, a quarter of what the campaign waits."""

SEEDS = {"smooth": (1,), "silence": (1,)}
"""Seeds of worlds whose walks take long; the others have two."""

LATE_OPERATOR = """
set-readers-per-host readers=2 wait=0; set-parallelism readers=8 wait=0;
set-image image=img:0 wait=10;
set-parallelism readers=4 wait=0; restart-operator pause=60 wait=0
"""
"""The operator is away for a minute while one host hands its splits over."""

TOO_MUCH = """
change-nonce wait=30; restart-operator pause=0 wait=30;
set-parallelism readers=6 wait=10; set-image image=img:0 wait=0
"""
"""The first one of these actions is enough to find the seeded bug."""


@pytest.mark.parametrize(
    ("world", "seed"), [(world, seed) for world in WORLDS for seed in SEEDS.get(world, (0, 1))]
)
def test_a_walk_keeps_all_rules(world: str, seed: int) -> None:
    assert play(replace(script_of(world, seed), rest=REST)) is None


def test_time_without_an_operator_is_not_part_of_a_gap() -> None:
    script = replace(shorter(script_of("smooth", 30), steps_of(LATE_OPERATOR)), rest=REST)

    assert play(script) is None


def _hosts_of_the_spec(roll: Roll, asked: tuple[str, ...], *_: object) -> tuple[str, ...]:
    """Return the hosts of a roll, also if none of them reads: those that read leave too early."""
    second = () if roll.second is None else (roll.second,)
    return tuple(host for host in dict.fromkeys((*asked, *second)) if host != roll.away)


def test_the_campaign_finds_a_seeded_bug_and_prints_a_short_walk_that_repeats_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Roll, "hosts", _hosts_of_the_spec)
    script = shorter(script_of("smooth-blue-green", 3), steps_of(TOO_MUCH))

    failure = judged(script, shrink=60.0)

    assert failure is not None
    assert failure.problem.rule is Rule.SHORT_GAPS
    assert len(steps_of(failure.actions)) < len(script.steps)
    assert f"--world smooth-blue-green --seeds 3 --actions '{failure.actions}'" in str(failure)
    assert play(shorter(script, steps_of(failure.actions))) == failure.problem


@pytest.mark.parametrize("world", WORLDS)
def test_actions_are_read_from_their_text(world: str) -> None:
    for seed in range(100):
        steps = draw(WORLDS[world], seed)
        assert steps_of(text_of(steps)) == steps


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jump wait=0", 'unknown action "jump"'),
        ("crash host=0 wait=0", '"crash" needs the parameters host, death'),
        ("suspend host=0", '"suspend" needs the parameters wait'),
    ],
)
def test_a_wrong_action_is_rejected_with_what_it_needs(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        steps_of(text)


def test_a_gap_ends_when_a_driver_reads_the_split_again() -> None:
    gaps, splits = Gaps(), {("main", "orders", 0), ("main", "orders", 1)}
    gaps.sample(splits, splits, now=0.0, counts=True)
    gaps.sample(splits, [("main", "orders", 0)], now=10.0, counts=True)
    gaps.sample(splits, [("main", "orders", 0)], now=100.0, counts=False)
    gaps.sample(splits, [("main", "orders", 0)], now=108.0, counts=True)

    assert gaps.longer_than(16.0) == [("main", "orders", 1)]
    gaps.sample(splits, splits, now=110.0, counts=True)
    assert gaps.longest == 18.0
    assert gaps.longer_than(0.0) == []
