"""Every interleaving of an operator and a driver whose readers ask for splits, on real code.

The world has one operator (or a coordinator embedded in the driver) and one driver. Documents are
text. Whoever looks sees the newest one, and never those that it missed, so requests and answers get
lost by themselves. An operator may die between any two writes of a turn, a driver between any two
steps of a micro-batch. Spark's checkpoint is the newest logged offset, and whether it is committed.
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from balanced_source.api import AsyncCall, SplitId
from balanced_source.coordinator import (
    CallCompleted,
    Effect,
    Event,
    ParallelismChanged,
    PersistState,
    PublishAssignment,
    ReportReceived,
    SourceCoordinator,
    state_codec,
)
from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import report as report_document
from balanced_source.documents import stream_offset
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host import ReaderHost, is_finished, plan
from support.pull_values import Driver, Found, Label, Operator, Turn, World

UID = "uid-1"


DISTURBED: Final = 0.05
"""Share of the steps of a life that are disturbances; with more of them they come before there is
anything to lose."""


class Model:
    """See the module.

    Args:
        source: what is read, such as `NumberLists`.
        is_embedded: whether the coordinator lives and dies with the driver, and stores nothing.
        parallelisms: what the user may rescale to.
    """

    def __init__(
        self, source: Any, *, is_embedded: bool = False, parallelisms: tuple[int, ...] = (1, 2)
    ) -> None:
        self.source = source
        self.is_embedded = is_embedded
        self.parallelisms = parallelisms
        self._rescales = self._moves = 0
        self._turns: dict[Any, Turn] = {}
        self._informed_drivers: dict[Any, Driver] = {}
        self._reports: dict[Any, str | None] = {}

    def execute(self, call: AsyncCall) -> Any:
        """Return what the outside world answers."""
        return self.source.execute(call)

    def wanted(self) -> Mapping[SplitId, int]:
        """Return where each split ends."""
        return {("lists", name): stop for name, stop in self.source.stops.items()}

    def explore(self, first: World, *, limit: int = 200_000) -> Found:
        """Visit all worlds that can be reached, breadth first."""
        self._rescales, self._moves = first.budget.rescales, first.budget.moves
        seen: dict[Any, tuple[Any, Label]] = {name_of(first): (None, ())}
        todo = [first]
        while todo and len(seen) < limit:
            following: list[World] = []
            for world in todo:
                steps = list(self.steps(world))
                settled = [] if any(is_free for _, _, is_free in steps) else self.unsettled(world)
                problem = world.problem or (settled[0] if settled else None)
                if problem is not None:
                    return Found(len(seen), problem, _trace(seen, name_of(world)))
                for label, after, _ in steps:
                    if (name := name_of(after)) not in seen:
                        seen[name] = name_of(world), label
                        following.append(after)
            todo = following
        return Found(len(seen))

    def live(self, first: World, chance: random.Random, *, steps: int = 2_000) -> Found:
        """One random life, until nothing happens any more."""
        self._rescales, self._moves = first.budget.rescales, first.budget.moves
        world, trace = first, list[Label]()
        for _ in range(steps):
            following = list(self.steps(world))
            if world.problem is not None or not any(is_free for _, _, is_free in following):
                settled = self.unsettled(world)
                problem = world.problem or (settled[0] if settled else None)
                return Found(len(trace), problem, tuple(trace))
            disturbances = [step for step in following if not step[2]]
            is_calm = not disturbances or chance.random() > DISTURBED
            label, world, _ = chance.choice(
                [step for step in following if step[2]] if is_calm else disturbances
            )
            trace.append(label)
        return Found(len(trace), "it never comes to rest", tuple(trace))

    def steps(self, world: World) -> Iterator[tuple[Label, World, bool]]:
        """All that can happen next and changes something, with whether it happens by itself."""
        before = name_of(world)
        for label, after, is_free in self._steps(world):
            if after.problem is not None or name_of(after) != before:
                yield label, after, is_free

    def _steps(self, world: World) -> Iterator[tuple[Label, World, bool]]:
        yield from self._disturbances(world)
        if world.operator is not None:
            yield from self._operator(world, world.operator)
        elif not self.is_embedded or world.driver is not None:
            yield from self._turn(world, ("the operator starts",), self._started(world))
        if world.driver is None:
            yield ("a driver starts",), self._driver_starts(world), True
        else:
            yield from self._driver(world, world.driver)

    # --- disturbances -----------------------------------------------------------------------------

    def _disturbances(self, world: World) -> Iterator[tuple[Label, World, bool]]:
        budget = world.budget
        if budget.operator and world.operator is not None:
            yield ("the operator dies",), self._operator_dies(world), False
        if budget.driver and world.driver is not None:
            left = replace(world, driver=None, budget=budget._replace(driver=budget.driver - 1))
            if self.is_embedded:
                left = replace(left, operator=None, published=None, report=None)
            yield ("the driver dies",), left, False
        for parallelism in self.parallelisms if budget.rescales else ():
            if parallelism != world.parallelism:
                paid = budget._replace(rescales=budget.rescales - 1)
                yield (
                    ("the user wants", parallelism),
                    replace(world, parallelism=parallelism, budget=paid),
                    False,
                )
        if budget.moves and world.stored is not None:
            yield ("the source moves, with its documents",), self._moved(world), False

    def _moved(self, world: World) -> World:
        """All processes have ended, and what is stored has another uid, which drivers ignore."""
        taken = state_codec.decode(str(world.stored), self.source, uid=UID).taken_over()
        published = world.published
        if published is not None:
            known = _assignment(published)
            unread = replace(known, incarnations=dict.fromkeys(known.incarnations, 0))
            published = assignment_document.encode(unread, source=UID)
        return replace(
            world,
            operator=None,
            driver=None,
            stored=state_codec.encode(taken, self.source, uid=UID),
            published=published,
            report=None,
            incarnation=0,
            budget=world.budget._replace(moves=world.budget.moves - 1),
        )

    def _operator_dies(self, world: World) -> World:
        return replace(
            world, operator=None, budget=world.budget._replace(operator=world.budget.operator - 1)
        )

    # --- the operator -----------------------------------------------------------------------------

    def _started(self, world: World) -> Turn:
        seen = (world.stored, world.published, world.report, world.parallelism)
        return self._remembered(("start", *seen), lambda: self._start(world))

    def _start(self, world: World) -> tuple[SourceCoordinator[Any, Any], list[Effect]]:
        published = _assignment(world.published) if world.published else None
        lineages = [published.lineage] if published is not None else []
        lineages += [_report(world.report).lineage] if world.report else []
        coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(
            self.source,
            parallelism=world.parallelism,
            restored=state_codec.decode(world.stored, self.source, uid=UID)
            if world.stored
            else None,
            published=published,
            lineage=max(lineages, default=0) + 1,
            keeps_finished=self.is_embedded,
        )
        return coordinator, coordinator.start(now=0.0)

    def _operator(self, world: World, operator: Operator) -> Iterator[tuple[Label, World, bool]]:
        mine = operator.coordinator
        if world.report is not None:
            turn = self._handled(operator, world.report, ReportReceived(_report(world.report)))
            yield from self._turn(world, ("the operator sees the report",), turn)
        if mine.state.parallelism != world.parallelism:
            turn = self._handled(operator, world.parallelism, ParallelismChanged(world.parallelism))
            yield from self._turn(world, ("the operator sees parallelism", world.parallelism), turn)
        for number, pending in mine._context.calls.items():
            turn = self._handled(
                operator, "listing", CallCompleted(number, self.execute(pending.call))
            )
            yield from self._turn(world, ("the listing answers",), turn)

    def _handled(self, operator: Operator, name: Any, event: Event) -> Turn:
        def handle() -> tuple[SourceCoordinator[Any, Any], list[Effect]]:
            coordinator = operator.coordinator.fork()
            return coordinator, coordinator.handle(event, now=0.0)

        return self._remembered((operator.key, name), handle)

    def _remembered(
        self, name: Any, turn: Callable[[], tuple[SourceCoordinator[Any, Any], list[Effect]]]
    ) -> Turn:
        if name not in self._turns:
            coordinator, effects = turn()
            writes = tuple(
                self._write(e) for e in effects if isinstance(e, PersistState | PublishAssignment)
            )
            self._turns[name] = Turn(Operator(coordinator), writes)
        return self._turns[name]

    def _write(self, effect: PersistState | PublishAssignment) -> tuple[str, str]:
        if isinstance(effect, PersistState):
            return "stored", state_codec.encode(effect.checkpoint, self.source, uid=UID)
        return "published", assignment_document.encode(effect.assignment, source=UID)

    def _turn(self, world: World, label: Label, turn: Turn) -> Iterator[tuple[Label, World, bool]]:
        for document, text in turn.writes:
            if world.budget.operator:
                yield (
                    (*label, "and dies before it writes what is", document),
                    self._operator_dies(world),
                    False,
                )
            if not (self.is_embedded and document == "stored"):
                # One of two fields
                world = replace(world, **{document: text})  # type: ignore[arg-type]
        problem = world.problem or self._hoarded(world, turn.operator.coordinator)
        yield label, replace(world, operator=turn.operator, problem=problem), True

    def _hoarded(self, world: World, coordinator: SourceCoordinator[Any, Any]) -> str | None:
        """A reader gets no more than it asked for, unless splits of others came back."""
        state = coordinator.state
        if (
            # Splits of readers that have left stay with others when there are more readers again.
            world.budget.rescales != self._rescales
            or world.budget.moves != self._moves
            or world.incarnation > 1
            or state.hosts["0"].report is None
        ):
            return None
        unread = [s for s, split in state.splits_now(state.owners).items() if not split.is_finished]
        most = max(
            (sum(state.owners[s] == r for s in unread) for r in range(state.parallelism)), default=0
        )
        # A split that a planned micro-batch reads to its end is replaced before it is read.
        return f"a reader hoards {most} splits" if most > 2 * self.source.look_ahead else None

    # --- the driver -------------------------------------------------------------------------------

    def _driver_starts(self, world: World) -> World:
        """Spark replays the micro-batch that is logged and not committed.

        Then the driver registers.
        """
        incarnation = world.incarnation + 1
        if not world.log[2]:
            world = self._committed(world)
        at = world.log[1]
        host = ReaderHost(incarnation=incarnation)
        if world.published is not None:
            host = replace(host, lineage=_assignment(world.published).lineage)
        host = host.on_committed(_offset(at))
        return self._reported(replace(world, driver=Driver(host, at), incarnation=incarnation))

    def _driver(self, world: World, driver: Driver) -> Iterator[tuple[Label, World, bool]]:
        if world.published is not None:
            informed = self._informed(driver, world.published)
            yield ("the driver sees the assignment",), replace(world, driver=informed), True
        yield ("the driver reports",), self._reported(world), True
        if driver.is_busy:
            done = self._committed(world)
            host = driver.host.on_committed(_offset(driver.at))
            yield (
                ("a micro-batch is committed",),
                replace(done, driver=Driver(host, driver.at)),
                True,
            )
        elif (planned := self._planned(world, driver)) is not None:
            yield ("a micro-batch is planned",), planned, True

    def _informed(self, driver: Driver, published: str) -> Driver:
        name = (driver.key, published)
        if name not in self._informed_drivers:
            host = driver.host.on_assignment(_assignment(published))
            self._informed_drivers[name] = Driver(host, driver.at, is_busy=driver.is_busy)
        return self._informed_drivers[name]

    def _planned(self, world: World, driver: Driver) -> World | None:
        """One number of each split at a time."""
        host, base = driver.host.base()
        if base is None:
            return None
        ends = {
            s: min((p or 0) + 1, int(base.attributes[s]["stop"])) for s, p in base.positions.items()
        }
        begin, end = _offset(driver.at), replace(base, positions=ends)
        if (end.epoch, end.positions) == (begin.epoch, begin.positions):
            return None
        text = json.dumps(stream_offset.to_json(end))
        after = Driver(host.on_planned(end), text, is_busy=True)
        return replace(world, driver=after, log=(driver.at, text, False))

    def _committed(self, world: World) -> World:
        """The sink has the micro-batch: each number must be the next of its list."""
        before, last, _ = world.log
        delivered, problem = dict(world.delivered), None
        owners = dict[SplitId, int]()
        for share in plan(_offset(before), _offset(last)):
            for piece in share.ranges:
                if owners.setdefault(piece.split_id, share.subtask_id) != share.subtask_id:
                    problem = f"two readers read {piece.split_id}"
                if (piece.start or 0) != delivered.get(piece.split_id, 0):
                    at = delivered.get(piece.split_id, 0)
                    problem = f"{piece.split_id} is read from {piece.start}, and {at} is delivered"
                delivered[piece.split_id] = int(piece.end or 0)
        return replace(
            world,
            log=(before, last, True),
            delivered=tuple(sorted(delivered.items())),
            problem=problem or world.problem,
        )

    def _reported(self, world: World) -> World:
        driver = world.driver
        assert driver is not None
        if driver.key not in self._reports:
            report = driver.host.report(sequence=_sequence(driver.host))
            text = None if report is None else report_document.encode(report, source=UID)
            self._reports[driver.key] = text
        written = self._reports[driver.key]
        return world if written is None else replace(world, report=written)

    # --- the end ----------------------------------------------------------------------------------

    def unsettled(self, world: World) -> list[str]:
        """What is wrong with a world in which nothing happens any more."""
        if world.operator is None or world.driver is None:
            return ["somebody does not start"]
        coordinator, driver = world.operator.coordinator, world.driver
        wanted = self.wanted()
        assignment = _assignment(world.published or "")
        found = []
        if dict(world.delivered) != wanted:
            found.append(f"lost: only {dict(world.delivered)} is delivered")
        if not coordinator.enumerator.is_finished():
            found.append("the source is not finished")
        if not is_finished(_offset(driver.at), assignment):
            found.append("the query does not end")
        if not self.is_embedded and coordinator.state.owners:
            found.append(
                f"splits that were read stay in the state: {sorted(coordinator.state.owners)}"
            )
        return found


@lru_cache(maxsize=100_000)
def _assignment(text: str) -> Assignment:
    return assignment_document.decode(text, source=UID)


@lru_cache(maxsize=100_000)
def _report(text: str) -> HostReport:
    return report_document.decode(text, source=UID)


@lru_cache(maxsize=100_000)
def _offset(text: str) -> StreamOffset:
    return stream_offset.from_json(json.loads(text))


def _sequence(host: ReaderHost) -> int:
    """Grows with what the host knows, and tells nothing of the way that it went."""
    read = sum(int(p or 0) for p in host.durable.positions.values())
    known = sum(int(host.committed.get(s, 0) or 0) for s in host.durable.positions)
    epoch = host.assignment.epoch if host.assignment is not None else 0
    return (
        ((((host.lineage * 100) + host.durable.epoch) * 100 + read) * 100 + known) * 100 + epoch + 1
    )


def name_of(world: World) -> Any:
    """Equal for worlds that behave alike forever."""
    return (
        world.operator and world.operator.key,
        world.stored,
        world.published,
        world.report,
        world.driver and world.driver.key,
        world.log,
        world.delivered,
        world.parallelism,
        world.incarnation,
        world.budget,
        world.problem,
    )


def _trace(seen: Mapping[Any, tuple[Any, Label]], name: Any) -> tuple[Label, ...]:
    found: list[Label] = []
    while name is not None:
        name, label = seen[name]
        found.append(label)
    return tuple(label for label in reversed(found) if label)
