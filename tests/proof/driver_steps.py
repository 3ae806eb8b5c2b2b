"""Steps of drivers in the model: they start, log micro-batches, report and die."""

from collections.abc import Iterator
from typing import NamedTuple

from proof.driver_side import DriverSide, DriverStep
from proof.operator_side import OperatorSide
from proof.shell import offset_of
from proof.values import Label, PartId, Setting, World


class Step(NamedTuple):
    """One thing that can happen.

    Attributes:
        label: its name.
        world: what it leads to.
        kind: the disturbance that it is, a name in `Budget`; empty for what happens anyway.
        problem: the rule that it breaks.
    """

    label: Label
    world: World
    kind: str = ""
    problem: str | None = None


class DriverSteps:
    """Steps of drivers; the base of `Model`, which makes the attributes."""

    setting: Setting
    operators: OperatorSide
    drivers: DriverSide

    def _paid(self, world: World, kind: str) -> World:
        return world._replace(budget=world.budget.minus(kind))

    def _driver(self, world: World, place: int) -> Iterator[Step]:
        number = world.drivers[place]
        driver, side = self.drivers.drivers[number], self.drivers
        who = f"host {driver.name}"
        if not self._has_application(world, driver.name):
            yield from self._is_stopped(world, place, who)
        if driver.live is None:
            yield from self._starts(world, place, who)
        else:
            yield from self._runs(world, place, "live", who)
            yield from self._dies(world, place, who)
        if driver.zombie is not None:
            yield from self._runs(world, place, "zombie", f"the zombie of {who}")
            gone = side.gone(number, "zombie")
            yield self._stepped(world, place, (f"the zombie of {who}", "dies at last"), gone)

    def _starts(self, world: World, place: int, who: str) -> Iterator[Step]:
        number, published = world.drivers[place], world.published
        if not published and not self.setting.are_drivers_early:
            return
        if not self._is_addressed(world, published, place) or not self._has_application(
            world, self._name(world, place)
        ):
            return
        step = self.drivers.start(number, published, has_seen=False)
        yield from self._reported(world, place, (who, "starts and registers"), step)
        if published and self.operators.assignments[published].lineage > 1:
            step = self.drivers.start(number, published, has_seen=True)
            yield from self._reported(
                world, place, (who, "starts, sees the lineage, and registers"), step
            )

    def _runs(self, world: World, place: int, role: str, who: str) -> Iterator[Step]:
        number, side = world.drivers[place], self.drivers
        for assignment, what in (
            (world.published, "the assignment"),
            (world.old_assignment, "an old assignment"),
        ):
            if assignment and self._is_addressed(world, assignment, place):
                yield self._stepped(
                    world, place, (who, "sees", what), side.see(number, role, assignment)
                )
        yield self._stepped(
            world,
            place,
            (who, "logs a batch"),
            side.log(number, role, world.broker, world.delivered),
        )
        if self.setting.may_lose and self.setting.budget.recreations:
            yield self._stepped(
                world,
                place,
                (who, "logs a batch by topic ids of a moment ago"),
                side.log_late(number, role, world.broker, world.delivered),
            )
        yield self._stepped(world, place, (who, "ends the batch"), side.end(number, role))
        yield self._stepped(
            world, place, (who, "has executors for all readers"), side.staffed(number, role)
        )
        yield from self._reported(world, place, (who, "reports"), side.report(number, role))

    def _name(self, world: World, place: int) -> str:
        return self.drivers.drivers[world.drivers[place]].name

    def _is_addressed(self, world: World, assignment: PartId, place: int) -> bool:
        """Whether an assignment is published for a host.

        Those that are gone keep the document that they had.
        """
        if not self.setting.host_sets or not assignment:
            return True
        return self._name(world, place) in self.operators.assignments[assignment].incarnations

    def _has_application(self, world: World, name: str) -> bool:
        """Whether the application of a host may stay.

        The operator stops those of hosts that it does not know.
        """
        return (
            not self.setting.host_sets
            or not world.operator
            or self.operators.knows(world.operator, name)
        )

    def _is_stopped(self, world: World, place: int, who: str) -> Iterator[Step]:
        number = world.drivers[place]
        for role in ("live", "zombie"):
            if getattr(self.drivers.drivers[number], role) is not None:
                gone = self.drivers.gone(number, role)
                yield self._stepped(
                    world, place, ("the operator stops the application of", who), gone
                )

    def _dies(self, world: World, place: int, who: str) -> Iterator[Step]:
        number, budget = world.drivers[place], world.budget
        if budget.crashes:
            gone = self.drivers.gone(number, "live")
            yield self._stepped(
                self._paid(world, "crashes"), place, (who, "dies"), gone, kind="crashes"
            )
        if budget.wipes and self._knows_all(world, number):
            wiped = self.drivers.wiped(number)
            label = (who, "dies, and its Spark checkpoint is deleted")
            yield self._stepped(self._paid(world, "wipes"), place, label, wiped, kind="wipes")
        if budget.zombies:
            raised = self.drivers.undead(number)
            label = (who, "is cut off; it goes on as a zombie")
            yield self._stepped(self._paid(world, "zombies"), place, label, raised, kind="zombies")

    def _knows_all(self, world: World, number: int) -> bool:
        """Whether the operator would not miss a driver's Spark checkpoint."""
        driver = self.drivers.drivers[number]
        if (
            not world.operator
            or driver.report is None
            or driver.live is None
            or driver.live.is_busy
        ):
            return False
        hosts = self.operators.operators[world.operator].coordinator.state.hosts
        known = hosts[driver.name].report if driver.name in hosts else None
        return bool(
            known == driver.report
            and driver.report.positions == offset_of(driver.log.last).positions
        )

    def _reported(self, world: World, place: int, label: Label, step: DriverStep) -> Iterator[Step]:
        yield self._stepped(world, place, label, step)
        before = self.drivers.report_part(world.drivers[place])
        if (
            before
            and step.driver
            and world.budget.old_news
            and self.drivers.report_part(step.driver) != before
        ):
            kept = self._paid(world, "old_news")._replace(old_report=before)
            yield self._stepped(
                kept,
                place,
                (*label, "(the report before is still on its way)"),
                step,
                kind="old_news",
            )

    def _stepped(
        self, world: World, place: int, label: Label, step: DriverStep, *, kind: str = ""
    ) -> Step:
        if step.problem is not None:
            return Step(label, world, kind, step.problem)
        if not step.driver:
            # it cannot happen: the world is unchanged, so the step is left out
            return Step(label, world, kind)
        drivers = (*world.drivers[:place], step.driver, *world.drivers[place + 1 :])
        return Step(
            label,
            world._replace(drivers=drivers, delivered=step.delivered or world.delivered),
            kind,
        )
