"""The explored world: which steps are possible in a state, and where they lead.

Steps of the protocol (`is_free`) are what happens anyway as long as everybody continues;
disturbances cost budget. A turn of the operator is one step: nothing else sees what it stores, so
all that matters is where it may die, and each place between two of its writes is a step of its own.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Final

from balanced_source.api import SplitId
from balanced_source.connectors.discovery import Discover
from proof import rules
from proof.backups import copied, moved
from proof.brokers import FIRST_LIFE, Lives, recreated
from proof.driver_side import DriverSide
from proof.driver_steps import DriverSteps, Step
from proof.operator_side import OperatorSide, Question, TurnResult
from proof.shell import offset_of
from proof.sources import scopes_of, source_of, splits_of
from proof.values import Driver, Label, PartId, Setting, Table, World

NEW_SPLIT: SplitId = ("c", "b", 0)

OPERATOR_IS_STALE: Final = 1
RIVAL_IS_STALE: Final = 2


def _swapped(world: World) -> World:
    """The world as the rival sees it."""
    stale = {0: 0, OPERATOR_IS_STALE: RIVAL_IS_STALE, RIVAL_IS_STALE: OPERATOR_IS_STALE}[
        world.stale
    ]
    return world._replace(operator=world.rival, rival=world.operator, stale=stale)


class Model(DriverSteps):
    """Steps of one setting.

    It remembers all parts and all that was computed of them; worlds belong to it.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._brokers: Table[Lives] = Table()
        self.operators = OperatorSide(
            setting, self._brokers, [source_of(setting, names) for names in setting.variants]
        )
        self.drivers = DriverSide(
            setting, self._brokers, self.operators.assignments, self.operators.reports
        )

    def first(self) -> World:
        """Nothing runs yet."""
        setting = self.setting
        lives = dict.fromkeys(splits_of(setting), FIRST_LIFE)
        begin = setting.records if setting.begins_latest else 0
        delivered = {(NEW_SPLIT, FIRST_LIFE): 0, **dict.fromkeys(lives.items(), begin)}
        return World(
            operator=0,
            stored=0,
            published=0,
            desired=setting.parallelism,
            broker=self._exists(lives),
            delivered=self.drivers.add_delivered(delivered),
            hosts=setting.hosts,
            drivers=tuple(self.drivers.add(Driver(name)) for name in setting.all_hosts),
            old_assignment=0,
            old_report=0,
            spec=0,
            backup=0,
            rival=0,
            stale=0,
            late=0,
            copy=(),
            budget=setting.budget,
        )

    def families(self, world: World) -> list[Callable[[], Iterator[Step]]]:
        """All that can happen next, by who does it; some steps may change nothing."""
        operator = self._operator if world.operator else self._operator_down
        places = range(len(world.drivers))
        return [
            lambda: self._outside(world),
            lambda: operator(world),
            lambda: self._rival(world),
            *(partial(self._driver, world, place) for place in places),
        ]

    def steps(self, world: World) -> list[Step]:
        """All that can happen next; steps that change nothing are left out."""
        found = chain.from_iterable(family() for family in self.families(world))
        return [step for step in found if step.world != world or step.problem is not None]

    def again(self, world: World) -> Iterator[Step]:
        """What starts queries again that ended before all that is known was read.

        Only when nothing else happens any more: the last reports have been seen.
        """
        if not (self.setting.is_bounded and world.operator):
            return
        operator = self.operators.operators[world.operator]
        started = tuple(
            self.drivers.again(number)
            if rules.has_rest(operator, self.drivers.drivers[number].name)
            else number
            for number in world.drivers
        )
        if started != world.drivers:
            label = ("applications that ended before all was read start again",)
            yield Step(label, world._replace(drivers=started))

    def unsettled(self, world: World) -> str | None:
        """Why the world, in which nothing happens any more, is not as it should be."""
        if not world.operator:
            return "liveness: no operator"
        operator = self.operators.operators[world.operator]
        wanted = {
            s: life
            for s, life in self._brokers[world.broker].items()
            if s[0] in self._scopes(world)
        }
        absent = frozenset(self.setting.names) - {str(s[1]) for s in wanted}
        if absent:
            problem = rules.ended(operator, absent)
        elif paused := self._paused(world):
            problem = rules.ended(operator, paused)
        elif self.setting.is_bounded:
            problem = rules.unfinished(operator, [self.drivers.drivers[d] for d in world.drivers])
        else:
            problem = rules.unsettled(operator, wanted, world.wanted, self.setting)
        if problem is not None:
            return problem
        delivered = self.drivers.delivered[world.delivered]
        stopped = rules.stopped(operator, wanted)
        rest = {
            s: delivered.get((s, life), 0)
            for s, life in wanted.items()
            if delivered.get((s, life), 0) != self.setting.records and s not in stopped
        }
        return (
            f"rule 2, nothing lost: of {self.setting.records} records only {rest} are delivered"
            if rest
            else None
        )

    def _paused(self, world: World) -> frozenset[SplitId]:
        """Splits of a source with an end that were begun, and whose clusters are not read now."""
        if not self.setting.is_bounded:
            return frozenset()
        scopes = scopes_of(self.setting.variants[world.spec], are_read=False)
        delivered = self.drivers.delivered[world.delivered]
        known = self.operators.operators[world.operator].enumerator.state.retained
        return frozenset(
            s
            for s, life in self._brokers[world.broker].items()
            if s[0] in scopes and s in known and delivered.get((s, life), 0) < self.setting.records
        )

    def _scopes(self, world: World) -> frozenset[str]:
        return frozenset(scopes_of(self.setting.variants[world.spec]))

    # --- the operator -----------------------------------------------------------------------------

    def _operator(self, world: World) -> Iterator[Step]:
        yield from self._operator_fails(world)
        yield from self._operator_works(world)
        if world.budget.rivals and not world.rival and world.stored:
            turn = self._starts_operator(world)
            beside = turn._replace(writes=())  # it publishes what is published
            paid = self._paid(world, "rivals")._replace(rival=beside.operator)
            yield Step(
                ("a second operator starts, and both believe to lead",),
                paid,
                "rivals",
                turn.problem,
            )

    def _operator_fails(self, world: World) -> Iterator[Step]:
        if world.budget.crashes:
            yield self._crashed(world, ("the operator dies",))
            if world.budget.amnesia and world.stored and self._may_forget(world):
                lost = self._restored(world, 0)
                budget = lost.budget.minus("crashes").minus("amnesia")
                yield Step(
                    ("the operator dies, and its state is deleted",),
                    lost._replace(budget=budget),
                    "amnesia",
                )
        if world.backup and world.backup != world.stored:
            old = self._restored(world, world.backup)
            yield Step(
                ("the operator dies, and an older copy of its state is restored",), old, "restores"
            )

    def _may_forget(self, world: World) -> bool:
        """Whether drivers know where all splits are.

        Without the state, what no driver knows is new to the operator.

        A new split is read from its beginning, so this matters only where the user wants what is
        written from now on.
        """
        if not self.setting.begins_latest:
            return True
        logged = [offset_of(self.drivers.drivers[n].log.last) for n in world.drivers]
        known = {s for offset in logged for s in (*offset.positions, *offset.retained)}
        return self._brokers[world.broker].keys() <= known

    def _restored(self, world: World, stored: PartId) -> World:
        stale = RIVAL_IS_STALE if world.rival else 0
        return world._replace(operator=0, stored=stored, backup=0, late=0, stale=stale)

    def _operator_works(self, world: World) -> Iterator[Step]:
        side = self.operators
        if side.operators[world.operator].spec != world.spec:
            turn = side.edit(world.operator, world.spec)
            yield from self._turn(
                world, ("the operator sees a source with", *self.setting.variants[world.spec]), turn
            )
        seen = side.operators[world.operator].coordinator.state.parallelism
        if seen != world.desired:
            turn = side.rescale(world.operator, world.desired)
            yield from self._turn(world, ("the operator sees parallelism", world.desired), turn)
        yield from self._hosts(world)
        yield from self._reports(world)
        yield from self._answers(world)
        if world.stale == OPERATOR_IS_STALE:
            yield Step(
                ("the operator sees that somebody else stores: it drops its state",),
                self._dropped(world),
            )
        elif (mine := side.operators[world.operator].wrote) not in (0, world.published):
            yield Step(
                ("the operator publishes again what somebody overwrote",),
                world._replace(published=mine),
            )

    def _hosts(self, world: World) -> Iterator[Step]:
        """The operator sees which hosts the user wants, and gives up waiting for one."""
        if not self.setting.host_sets:
            return
        side = self.operators
        if side.has_others(world.operator, world.hosts):
            turn = side.rehost(world.operator, world.hosts)
            yield from self._turn(world, ("the operator sees hosts", *world.hosts), turn)
        for name in side.expected(world.operator) if world.budget.overdue else ():
            label = ("the operator waits no longer for host", name)
            yield from self._turn(
                self._paid(world, "overdue"),
                label,
                side.give_up(world.operator, name),
                kind="overdue",
            )
        for name in side.may_lose(world.operator) if world.budget.losses else ():
            turn = side.lose_for_good(world.operator, name)
            yield from self._turn(
                self._paid(world, "losses"),
                ("the operator gives up host", name),
                turn,
                kind="losses",
            )
        # One that has said everything repeats it every few seconds, which is no step here.
        said = [side.reports[part] for part in map(self.drivers.report_part, world.drivers) if part]
        for name in side.heard(world.operator, said=said) if world.budget.silences else ():
            turn = side.note_silent(world.operator, name)
            label = ("the operator gives nothing more to host", name)
            yield from self._turn(self._paid(world, "silences"), label, turn, kind="silences")

    def _reports(self, world: World) -> Iterator[Step]:
        side = self.operators
        for driver in world.drivers:
            if not side.knows(world.operator, self.drivers.drivers[driver].name):
                continue
            if report := self.drivers.report_part(driver):
                label = ("the operator sees the report of host", self.drivers.drivers[driver].name)
                yield from self._turn(world, label, side.see_report(world.operator, report))
            yield from self._loss(world, self.drivers.drivers[driver])
        if world.old_report and side.knows(world.operator, side.reports[world.old_report].host):
            turn = side.see_report(world.operator, world.old_report)
            yield from self._turn(
                world._replace(old_report=0), ("the operator sees an old report",), turn
            )

    def _rival(self, world: World) -> Iterator[Step]:
        """The second operator does what operators do, until it sees that it does not lead."""
        if world.late:
            late = world._replace(published=world.late, late=0)
            yield Step(("an operator publishes at last what it stored before it paused",), late)
        if not world.rival:
            return
        for step in self._operator_works(_swapped(world)):
            yield step._replace(label=("rival:", *step.label), world=_swapped(step.world))
        yield Step(
            ("the rival sees that it does not lead",),
            world._replace(rival=0, stale=world.stale & 1),
        )

    def _dropped(self, world: World) -> World:
        return world._replace(operator=0, stale=0)

    def _operator_down(self, world: World) -> Iterator[Step]:
        turn = self._starts_operator(world)
        yield from self._turn(world, ("an operator starts",), turn)

    def _starts_operator(self, world: World) -> TurnResult:
        """A lineage is at hand that is newer than any in the documents, should one be needed."""
        published = world.published
        seen = [self.operators.assignments[published].lineage] if published else []
        seen += [
            r.lineage for d in world.drivers if (r := self.drivers.drivers[d].report) is not None
        ]
        lineage = max(seen, default=0) + 1
        return self.operators.start(world.stored, published, lineage, world.wanted)

    def _loss(self, world: World, driver: Driver) -> Iterator[Step]:
        if driver.report is None or driver.live is not None or driver.zombie is not None:
            return
        incarnation = driver.report.incarnation
        if self.operators.is_active(world.operator, driver.name, incarnation):
            turn = self.operators.lose(world.operator, driver.name, incarnation)
            yield from self._turn(
                world, ("the operator sees that the pods are gone of host", driver.name), turn
            )

    def _answers(self, world: World) -> Iterator[Step]:
        for question in self.operators.questions(world.operator):
            what = (
                "a discovery"
                if isinstance(question.call, Discover)
                else "a look-up of start positions"
            )
            where = (what, "on", question.scope) if len(self.setting.clusters) > 1 else (what,)
            turn = self.operators.answer(world.operator, question, world.broker)
            yield from self._turn(world, (*where, "answers"), turn)
            if world.budget.faults:
                turn = self.operators.answer(world.operator, question, 0)
                yield from self._turn(
                    self._paid(world, "faults"), (*where, "fails"), turn, kind="faults"
                )
            if world.budget.blind and isinstance(question.call, Discover):
                yield from self._blind(world, question, where)

    def _blind(self, world: World, question: Question, where: Label) -> Iterator[Step]:
        exists = frozenset(s for s in self._brokers[world.broker] if s[0] == question.scope)
        for listed in (
            dict.fromkeys((frozenset[SplitId](), exists - {min(exists)})) if exists else ()
        ):
            turn = self.operators.answer(
                world.operator, question, world.broker, hidden=exists - listed
            )
            said = (
                ("is blind, it lists only", *sorted(listed))
                if listed
                else ("is blind, it lists nothing",)
            )
            yield from self._turn(self._paid(world, "blind"), (*where, *said), turn, kind="blind")

    def _turn(
        self, world: World, label: Label, turn: TurnResult, *, kind: str = ""
    ) -> Iterator[Step]:
        if turn.problem is not None:
            yield Step(label, world, kind, turn.problem)
            return
        for count in range(1, len(turn.writes)):
            if world.budget.crashes:
                after, problem = self._written(world, turn, count)
                place = f"and dies after writing {turn.writes[count - 1].document}"
                yield self._crashed(after, (*label, place), problem)
        if world.stale == OPERATOR_IS_STALE and any(
            write.document == "stored" for write in turn.writes
        ):
            yield Step(
                (*label, "and fails to store: it drops its state"), self._dropped(world), kind
            )
            return
        after, problem = self._written(world, turn, len(turn.writes))
        after = after._replace(operator=turn.operator)
        yield Step(label, after, kind, problem)
        if problem:
            return
        yield from self._pauses(world, label, turn)
        if world.budget.old_news and world.published and after.published != world.published:
            kept = self._paid(after, "old_news")._replace(old_assignment=world.published)
            yield Step((*label, "(the assignment before is still on its way)"), kept, "old_news")
        if world.budget.restores and world.stored and after.stored != world.stored:
            kept = self._paid(after, "restores")._replace(backup=world.stored)
            yield Step((*label, "(somebody keeps a copy of the state before)"), kept, "restores")

    def _pauses(self, world: World, label: Label, turn: TurnResult) -> Iterator[Step]:
        """While a rival takes over, an operator may pause between storing and publishing."""
        last = len(turn.writes) - 1
        if not world.rival or world.late or last < 1 or turn.writes[last].document != "published":
            return
        after, problem = self._written(world, turn, last)
        paused = self._paid(after, "old_news")._replace(operator=0, late=turn.writes[last].part)
        if world.budget.old_news:
            yield Step((*label, "and pauses before it publishes"), paused, "old_news", problem)

    def _written(self, world: World, turn: TurnResult, count: int) -> tuple[World, str | None]:
        """The world after the first writes of a turn, and what is wrong with them."""
        problem = None
        for write in turn.writes[:count]:
            if write.document == "published":
                problem = problem or self.operators.order_problem(
                    world.stored, world.published, write.part
                )
                world = world._replace(published=write.part)
            elif world.stale == OPERATOR_IS_STALE:
                return world, problem  # compare-and-swap fails, and nothing else is executed
            else:
                world = world._replace(
                    stored=write.part, stale=RIVAL_IS_STALE if world.rival else 0
                )
        return world, problem

    def _crashed(self, world: World, label: Label, problem: str | None = None) -> Step:
        stale = 0 if world.stale == OPERATOR_IS_STALE else world.stale
        return Step(
            label,
            self._paid(world, "crashes")._replace(operator=0, stale=stale),
            "crashes",
            problem,
        )

    # --- outside ----------------------------------------------------------------------------------

    def _outside(self, world: World) -> Iterator[Step]:
        if world.old_assignment:
            yield Step(("nobody else sees the old assignment",), world._replace(old_assignment=0))
        if world.budget.rescales and not self._is_over(world):
            for wanted in self.setting.parallelisms:
                if wanted != world.desired:
                    changed = self._paid(world, "rescales")._replace(desired=wanted)
                    yield Step(("the user wants parallelism", wanted), changed, "rescales")
        if world.budget.hosts and not self._is_over(world):
            for names in self.setting.host_sets:
                if names != world.hosts:
                    changed = self._paid(world, "hosts")._replace(hosts=names)
                    yield Step(("the user wants hosts", *names), changed, "hosts")
        if world.budget.edits:
            for spec, names in enumerate(self.setting.variants):
                if spec != world.spec:
                    edited = self._paid(world, "edits")._replace(spec=spec)
                    yield Step(("the user wants a source with", *names), edited, "edits")
        if world.budget.moves and world.stored:
            after = moved(self._paid(world, "moves"), self.operators, self.drivers)
            yield Step(("the source moves, with its documents",), after, "moves")
        yield from copied(world, self.drivers)
        yield from self._changes(world)

    def _is_over(self, world: World) -> bool:
        return all(self.drivers.drivers[number].is_done for number in world.drivers)

    def _changes(self, world: World) -> Iterator[Step]:
        """What happens to topics."""
        budget, lives = world.budget, self._brokers[world.broker]
        if budget.growths and NEW_SPLIT not in lives and self._may_grow(world):
            yield self._changed(
                world, "growths", {**lives, NEW_SPLIT: FIRST_LIFE}, ("a split appears:", NEW_SPLIT)
            )
        if budget.shrinks:
            for gone in sorted(lives):
                rest = {s: life for s, life in lives.items() if s != gone}
                yield self._changed(world, "shrinks", rest, ("a split disappears:", gone))
        if budget.recreations and lives:
            cluster, topic = min(lives)[:2]
            after = recreated(lives, str(cluster), str(topic))
            yield self._changed(
                world,
                "recreations",
                after,
                ("a topic is deleted and created again:", cluster, topic),
            )

    def _may_grow(self, world: World) -> bool:
        """What appears before the first discovery is not new: the user's start option applies."""
        if not self.setting.begins_latest:
            return True
        return bool(world.stored and self.operators.checkpoints[world.stored].enumerator.discovered)

    def _changed(self, world: World, kind: str, lives: Lives, label: Label) -> Step:
        return Step(label, self._paid(world, kind)._replace(broker=self._exists(lives)), kind)

    def _exists(self, lives: Lives) -> PartId:
        return self._brokers.add(lives, frozenset(lives.items()))

    def describe(self, world: World) -> dict[str, Any]:
        """The parts of a world, for people."""
        side = self.operators
        return {
            "operator": side.operators[world.operator].coordinator.state
            if world.operator
            else None,
            "published": side.assignments[world.published] if world.published else None,
            "drivers": [self.drivers.drivers[d] for d in world.drivers],
            "delivered": dict(self.drivers.delivered[world.delivered]),
        }
