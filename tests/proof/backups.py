"""Backups: a source moves to another Kubernetes cluster, or an older checkpoint is restored."""

from collections.abc import Iterator

from proof.driver_side import DriverSide
from proof.driver_steps import Step
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


def copied(world: World, drivers: DriverSide) -> Iterator[Step]:
    """The Spark checkpoints and the sink are copied; later they are restored to the same point.

    So nothing is delivered twice, and what is missing in the sink must be read again.
    """
    if world.copy:
        *logs, sink = world.copy
        restored = tuple(map(drivers.restored, world.drivers, logs))
        if all(restored) and (restored, sink) != (world.drivers, world.delivered):
            after = world._replace(drivers=restored, delivered=sink, copy=())
            yield Step(("an older checkpoint and the sink of then are restored",), after, "copies")
    elif world.budget.copies and all(
        drivers.may_be_copied(driver, world.broker) for driver in world.drivers
    ):
        paid = world._replace(budget=world.budget.minus("copies"))
        after = paid._replace(copy=(*world.drivers, world.delivered))
        yield Step(("somebody copies checkpoint and sink",), after, "copies")
