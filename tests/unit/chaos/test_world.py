"""A seed decides the whole schedule."""

import pytest

from chaos.light.faults import FAULTS
from chaos.light.losses import KINDS, LOSSES, RARE
from chaos.world import draw

pytestmark = pytest.mark.unit


def test_a_seed_can_be_replayed() -> None:
    first, second = (draw(7, natives=True, kinds=KINDS) for _ in range(2))

    assert first == second
    assert first != draw(8, natives=True, kinds=KINDS)


def test_a_few_dozen_seeds_reach_every_world_and_every_fault() -> None:
    drawn = [draw(seed, natives=True, kinds=KINDS, rare=RARE) for seed in range(150)]
    worlds = [schedule.world for schedule in drawn]

    assert {fault.kind for schedule in drawn for fault in schedule.faults} == {*FAULTS, *LOSSES}
    assert {len(world.clusters) for world in worlds} == {1, 3}
    assert {world.reader for world in worlds} == {"native", "python"}
    assert {world.on_data_loss for world in worlds} == {"Fail", "Continue"}
    for flag in ("is_embedded", "is_bounded", "is_latest", "limits"):
        assert {bool(getattr(world, flag)) for world in worlds} == {True, False}
    assert not [
        world for world in worlds if world.is_bounded and (world.is_latest or world.is_embedded)
    ]
