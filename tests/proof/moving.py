"""A source moves to another Kubernetes cluster."""

from proof.driver_side import DriverSide
from proof.operator_side import OperatorSide
from proof.values import World


def moved(world: World, operators: OperatorSide, drivers: DriverSide) -> World:
    """Return the world in which all processes have ended, and a backup has restored the source.

    Its state, its assignment and its Spark checkpoints are there, under another uid. Drivers ignore
    documents of other uids, so reports might as well be gone. What was under way in the former
    cluster does not arrive in this one.
    """
    return world._replace(
        operator=0,
        stored=operators.taken_over(world.stored),
        published=world.published and operators.for_no_driver(world.published),
        drivers=tuple(map(drivers.moved, world.drivers)),
        old_assignment=0,
        old_report=0,
        backup=0,
        rival=0,
        stale=0,
        late=0,
    )
