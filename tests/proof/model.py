"""The explored world: which steps are possible in a state, and where they lead.

Steps of the protocol (`is_free`) are what happens anyway as long as everybody goes on; disturbances cost budget.
A turn of the operator is one step: nobody else sees what it stores, so all that matters is where it may die, and each
place between two of its writes is a step of its own.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from balanced_source.api import SplitId
from balanced_source.assigners import STRATEGIES
from balanced_source.connectors.discovery import Discover
from balanced_source.connectors.kafka import EARLIEST, LATEST
from proof import rules
from proof.driver_side import DriverSide, DriverStep
from proof.operator_side import OperatorSide, TurnResult
from proof.values import Driver, Label, Setting, Table, World
from support.world import kafka_source

NEW_SPLIT: SplitId = ("c", "b", 0)


class Step(NamedTuple):
    """One thing that can happen: its name, the world after it, whether it is free, and the rule that it breaks."""

    label: Label
    world: World
    is_free: bool
    problem: str | None = None


class Model:
    """Steps of one setting. It remembers all parts and all that was computed of them; worlds belong to it."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        source = kafka_source(
            "c",
            assigner=STRATEGIES[setting.strategy](),
            retention=setting.retention,
            discovery_interval=300.0 if setting.is_periodic else None,
            starting_offsets=LATEST if setting.begins_latest else EARLIEST,
        )
        self.operators = OperatorSide(setting, source)
        self.drivers = DriverSide(setting, self.operators.assignments, self.operators.reports)
        self._brokers: Table[frozenset[SplitId]] = Table()

    def first(self) -> World:
        """Nothing runs yet."""
        setting = self.setting
        exists = frozenset(("c", "a" if i % 2 == 0 else "o", i // 2) for i in range(setting.splits))
        begin = setting.records if setting.begins_latest else 0
        return World(
            operator=0,
            stored=0,
            published=0,
            desired=setting.parallelism,
            broker=self._brokers.add(exists, exists),
            delivered=self.drivers.add_delivered({NEW_SPLIT: 0, **dict.fromkeys(exists, begin)}),
            drivers=tuple(self.drivers.add(Driver(name)) for name in setting.hosts),
            old_assignment=0,
            old_report=0,
            budget=setting.budget,
        )

    def steps(self, world: World) -> list[Step]:
        """All that can happen next; steps that change nothing are left out."""
        found = [*self._outside(world)]
        found += self._operator(world) if world.operator else self._operator_down(world)
        for place in range(len(world.drivers)):
            found += self._driver(world, place)
        return [step for step in found if step.world != world or step.problem is not None]

    def unsettled(self, world: World) -> str | None:
        """Why the world, in which nothing happens any more, is not as it should be."""
        if not world.operator:
            return "liveness: no operator"
        coordinator = self.operators.operators[world.operator].coordinator
        exists = self._brokers[world.broker]
        problem = rules.unsettled(coordinator.state, exists, world.desired, self.setting)
        if problem is not None:
            return problem
        delivered = self.drivers.delivered[world.delivered]
        rest = {s: delivered[s] for s in exists if delivered[s] != self.setting.records}
        return f"rule 2, nothing lost: of {self.setting.records} records only {rest} are delivered" if rest else None

    # --- the operator -------------------------------------------------------------------------------------------

    def _operator(self, world: World) -> Iterator[Step]:
        side = self.operators
        if world.budget.crashes:
            yield self._crashed(world, ("the operator dies",))
            if world.budget.amnesia and world.stored:
                budget = world.budget.minus("crashes").minus("amnesia")
                lost = world._replace(operator=0, stored=0, budget=budget)
                yield Step(("the operator dies, and its state is deleted",), lost, False)
        seen = side.operators[world.operator].coordinator.state.parallelism
        if seen != world.desired:
            turn = side.rescale(world.operator, world.desired)
            yield from self._turn(world, ("the operator sees parallelism", world.desired), turn)
        for driver in world.drivers:
            if report := self.drivers.report_part(driver):
                label = ("the operator sees the report of host", self.drivers.drivers[driver].name)
                yield from self._turn(world, label, side.see_report(world.operator, report))
            yield from self._loss(world, self.drivers.drivers[driver])
        if world.old_report:
            turn = side.see_report(world.operator, world.old_report)
            yield from self._turn(world._replace(old_report=0), ("the operator sees an old report",), turn)
        yield from self._answers(world)

    def _operator_down(self, world: World) -> Iterator[Step]:
        published = world.published
        seen = [self.operators.assignments[published].lineage] if published else []
        seen += [r.lineage for d in world.drivers if (r := self.drivers.drivers[d].report) is not None]
        lineage = 1 if world.stored else max(seen, default=0) + 1
        turn = self.operators.start(world.stored, lineage, world.desired)
        yield from self._turn(world, ("an operator starts",), turn)

    def _loss(self, world: World, driver: Driver) -> Iterator[Step]:
        if driver.report is None or driver.live is not None or driver.zombie is not None:
            return
        incarnation = driver.report.incarnation
        if self.operators.is_active(world.operator, driver.name, incarnation):
            turn = self.operators.lose(world.operator, driver.name, incarnation)
            yield from self._turn(world, ("the operator sees that the pods are gone of host", driver.name), turn)

    def _answers(self, world: World) -> Iterator[Step]:
        exists = self._brokers[world.broker]
        for question in self.operators.questions(world.operator):
            what = "a discovery" if isinstance(question.call, Discover) else "a look-up of start positions"
            turn = self.operators.answer(world.operator, question, exists)
            yield from self._turn(world, (what, "answers"), turn)
            if world.budget.faults:
                turn = self.operators.answer(world.operator, question, None)
                yield from self._turn(self._paid(world, "faults"), (what, "fails"), turn, is_free=False)
            if world.budget.blind and isinstance(question.call, Discover) and exists:
                for listed in dict.fromkeys((frozenset[SplitId](), exists - {min(exists)})):
                    turn = self.operators.answer(world.operator, question, listed)
                    label = (
                        (what, "is blind, it lists only", *sorted(listed))
                        if listed
                        else (what, "is blind, it lists nothing")
                    )
                    yield from self._turn(self._paid(world, "blind"), label, turn, is_free=False)

    def _turn(self, world: World, label: Label, turn: TurnResult, *, is_free: bool = True) -> Iterator[Step]:
        if turn.problem is not None:
            yield Step(label, world, is_free, turn.problem)
            return
        for count in range(1, len(turn.writes)):
            if world.budget.crashes:
                after, problem = self._written(world, turn, count)
                place = f"and dies after writing {turn.writes[count - 1].document}"
                yield self._crashed(after, (*label, place), problem)
        after, problem = self._written(world, turn, len(turn.writes))
        after = after._replace(operator=turn.operator)
        yield Step(label, after, is_free, problem)
        if world.budget.old_news and world.published and after.published != world.published and not problem:
            kept = self._paid(after, "old_news")._replace(old_assignment=world.published)
            yield Step((*label, "(the assignment before is still on its way)"), kept, False)

    def _written(self, world: World, turn: TurnResult, count: int) -> tuple[World, str | None]:
        problem = None
        for write in turn.writes[:count]:
            if write.document == "published":
                problem = problem or self.operators.order_problem(world.stored, world.published, write.part)
                world = world._replace(published=write.part)
            else:
                world = world._replace(stored=write.part)
        return world, problem

    def _crashed(self, world: World, label: Label, problem: str | None = None) -> Step:
        return Step(label, self._paid(world, "crashes")._replace(operator=0), False, problem)

    def _paid(self, world: World, kind: str) -> World:
        return world._replace(budget=world.budget.minus(kind))

    # --- drivers ------------------------------------------------------------------------------------------------

    def _driver(self, world: World, place: int) -> Iterator[Step]:
        number = world.drivers[place]
        driver, side = self.drivers.drivers[number], self.drivers
        who = f"host {driver.name}"
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
        step = self.drivers.start(number, published, has_seen=False)
        yield from self._reported(world, place, (who, "starts and registers"), step)
        if published and self.operators.assignments[published].lineage > 1:
            step = self.drivers.start(number, published, has_seen=True)
            yield from self._reported(world, place, (who, "starts, sees the lineage, and registers"), step)

    def _runs(self, world: World, place: int, role: str, who: str) -> Iterator[Step]:
        number, side = world.drivers[place], self.drivers
        for assignment, what in ((world.published, "the assignment"), (world.old_assignment, "an old assignment")):
            if assignment:
                yield self._stepped(world, place, (who, "sees", what), side.see(number, role, assignment))
        exists = self._brokers[world.broker]
        yield self._stepped(world, place, (who, "logs a batch"), side.log(number, role, exists, world.delivered))
        yield self._stepped(world, place, (who, "ends the batch"), side.end(number, role))
        yield from self._reported(world, place, (who, "reports"), side.report(number, role))

    def _dies(self, world: World, place: int, who: str) -> Iterator[Step]:
        number, budget = world.drivers[place], world.budget
        if budget.crashes:
            gone = self.drivers.gone(number, "live")
            yield self._stepped(self._paid(world, "crashes"), place, (who, "dies"), gone, is_free=False)
        if budget.wipes and self._knows_all(world, number):
            wiped = self.drivers.wiped(number)
            label = (who, "dies, and its Spark checkpoint is deleted")
            yield self._stepped(self._paid(world, "wipes"), place, label, wiped, is_free=False)
        if budget.zombies:
            raised = self.drivers.undead(number)
            label = (who, "is cut off; it goes on as a zombie")
            yield self._stepped(self._paid(world, "zombies"), place, label, raised, is_free=False)

    def _knows_all(self, world: World, number: int) -> bool:
        """Whether the operator would not miss a driver's Spark checkpoint."""
        driver = self.drivers.drivers[number]
        if not world.operator or driver.report is None or driver.live is None or driver.live.is_busy:
            return False
        known = self.operators.operators[world.operator].coordinator.state.hosts[driver.name].report
        return bool(known == driver.report and driver.report.positions == driver.log.last.positions)

    def _reported(self, world: World, place: int, label: Label, step: DriverStep) -> Iterator[Step]:
        yield self._stepped(world, place, label, step)
        before = self.drivers.report_part(world.drivers[place])
        if before and step.driver and world.budget.old_news and self.drivers.report_part(step.driver) != before:
            kept = self._paid(world, "old_news")._replace(old_report=before)
            yield self._stepped(kept, place, (*label, "(the report before is still on its way)"), step, is_free=False)

    def _stepped(self, world: World, place: int, label: Label, step: DriverStep, *, is_free: bool = True) -> Step:
        if step.problem is not None:
            return Step(label, world, is_free, step.problem)
        if not step.driver:
            return Step(label, world, is_free)  # it cannot happen: the world is unchanged, so the step is left out
        drivers = (*world.drivers[:place], step.driver, *world.drivers[place + 1 :])
        return Step(label, world._replace(drivers=drivers, delivered=step.delivered or world.delivered), is_free)

    # --- outside ------------------------------------------------------------------------------------------------

    def _outside(self, world: World) -> Iterator[Step]:
        budget, exists = world.budget, self._brokers[world.broker]
        if world.old_assignment:
            yield Step(("nobody else sees the old assignment",), world._replace(old_assignment=0), True)
        if budget.rescales:
            for wanted in self.setting.parallelisms:
                if wanted != world.desired:
                    changed = self._paid(world, "rescales")._replace(desired=wanted)
                    yield Step(("the user wants parallelism", wanted), changed, False)
        if budget.growths and NEW_SPLIT not in exists and self._may_grow(world):
            yield self._exist(self._paid(world, "growths"), exists | {NEW_SPLIT}, ("a split appears:", NEW_SPLIT))
        if budget.shrinks:
            for gone in sorted(exists):
                yield self._exist(self._paid(world, "shrinks"), exists - {gone}, ("a split disappears:", gone))

    def _may_grow(self, world: World) -> bool:
        """What appears before the first discovery is not new, and falls under the user's start option."""
        if not self.setting.begins_latest:
            return True
        return bool(world.stored and self.operators.checkpoints[world.stored].enumerator.discovered)

    def _exist(self, world: World, exists: frozenset[SplitId], label: Label) -> Step:
        return Step(label, world._replace(broker=self._brokers.add(exists, exists)), False)

    def describe(self, world: World) -> dict[str, Any]:
        """The parts of a world, for people."""
        side = self.operators
        return {
            "operator": side.operators[world.operator].coordinator.state if world.operator else None,
            "published": side.assignments[world.published] if world.published else None,
            "drivers": [self.drivers.drivers[d] for d in world.drivers],
            "delivered": dict(self.drivers.delivered[world.delivered]),
        }
