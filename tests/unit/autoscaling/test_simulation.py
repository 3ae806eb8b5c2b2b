"""A short part of `make bench-autoscale`.

The simulation is deterministic, and the product does what it claims.
"""

from benchmarks.autoscaling.rivals import Own, PodAutoscaler
from benchmarks.autoscaling.shapes import SHAPES, SPLITS
from benchmarks.autoscaling.world import CAPACITY, World

from balanced_source_operator.controller.autoscaling import Policy

BY_NAME = {shape.name: shape for shape in SHAPES}


def test_a_step_is_followed_with_less_lag_and_fewer_readers_than_by_lag() -> None:
    load = list(BY_NAME["step"].rates(seed=7))
    own = World(4).run(load, Own())
    rival = World(4).run(load, PodAutoscaler(target=5 * CAPACITY, window=300, step=0.1, fewest=1))

    assert own.lag < rival.lag
    assert own.readers < rival.readers
    assert own.reversals <= 4


def test_the_same_seed_gives_the_same_outcome() -> None:
    runs = [World(4).run(BY_NAME["spike"].rates(seed=7), Own()) for _ in range(2)]

    assert runs[0] == runs[1]


def test_every_record_is_read_or_unread() -> None:
    load = list(BY_NAME["hot key"].rates(seed=7))
    world = World(4)
    world.run(load, Own(policy=Policy(min_readers=2, max_readers=8)))

    arrived = 5 * sum(map(sum, load))
    assert len(world.read) == SPLITS
    assert abs(arrived - sum(world.read) - world.unread) < 1e-6 * arrived
