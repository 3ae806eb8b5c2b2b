"""Drivers in the explored world.

Planner, host runtime and state machine are real, Spark around them is made up.

Spark is reduced to what the protocol sees of it: a micro-batch is logged (from then on a restart
replays it, so its records count as delivered), later it ends; two drivers that share a checkpoint
cannot both log the same micro-batch, the one that comes second dies of it. Offsets pass through
Spark as JSON text, as in the product.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from balanced_source.documents import report as report_document
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.errors import BalancedSourceError
from balanced_source.host import Phase, ReaderHost
from proof import rules
from proof.brokers import Lives, before_recreation
from proof.canonical import key
from proof.shell import is_last, offset_of, shell
from proof.values import Delivered, Driver, Log, PartId, Runner, Setting, Table, Violation

UID = "uid-1"


class DriverStep(NamedTuple):
    """What a step leads to; `driver` 0: it cannot happen. Or the rule that it breaks."""

    driver: PartId
    delivered: PartId = 0
    problem: str | None = None


IMPOSSIBLE = DriverStep(0)

ANY: Final = 1
"""The first assignment, where all of them say the same of what matters."""


class DriverSide:
    """Steps of drivers, as functions of parts."""

    def __init__(
        self,
        setting: Setting,
        brokers: Table[Lives],
        assignments: Table[Assignment],
        reports: Table[HostReport],
    ) -> None:
        self.setting = setting
        self.drivers: Table[Driver] = Table()
        self.delivered: Table[Delivered] = Table()
        self._brokers = brokers
        self._assignments = assignments
        self._reports = reports
        self._shell = shell()
        self._steps: dict[tuple[Any, ...], DriverStep] = {}
        self._report_parts: dict[PartId, PartId] = {}

    def add(self, driver: Driver) -> PartId:
        """The part's number."""
        return self.drivers.add(driver, key(driver))

    def add_delivered(self, delivered: Delivered) -> PartId:
        """The part's number."""
        return self.delivered.add(delivered, tuple(sorted(delivered.items())))

    # --- steps ------------------------------------------------------------------------------------

    def start(self, driver: PartId, published: PartId, *, has_seen: bool) -> DriverStep:
        """A new process.

        Replays what is logged but not committed, takes the next incarnation, registers.
        """
        return self._remembered(
            ("start", driver, published, has_seen), lambda: self._start(driver, published, has_seen)
        )

    def see(self, driver: PartId, role: str, assignment: PartId) -> DriverStep:
        """A process sees an assignment document, new or old."""
        return self._remembered(
            ("see", driver, role, assignment), lambda: self._see(driver, role, assignment)
        )

    def log(self, driver: PartId, role: str, broker: PartId, delivered: PartId) -> DriverStep:
        """A process plans a micro-batch, and Spark logs it."""
        return self._remembered(
            ("log", driver, role, broker, delivered),
            lambda: self._log(driver, role, broker, delivered),
        )

    def log_late(self, driver: PartId, role: str, broker: PartId, delivered: PartId) -> DriverStep:
        """As `log`, by topic ids that were true before topics were recreated.

        Tasks skip the ranges of former topics. Where they must not be skipped, the query fails.
        """
        return self._remembered(
            ("log late", driver, role, broker, delivered),
            lambda: self._log(driver, role, broker, delivered, is_late=True),
        )

    def end(self, driver: PartId, role: str) -> DriverStep:
        """A micro-batch ends: its tasks are done, Spark commits it and asks for the next one.

        Spark may also ask once more.
        """
        return self._remembered(("end", driver, role), lambda: self._end(driver, role))

    def report(self, driver: PartId, role: str) -> DriverStep:
        """A process writes its report document."""
        return self._remembered(("report", driver, role), lambda: self._report(driver, role))

    def staffed(self, driver: PartId, role: str) -> DriverStep:
        """Executors have come for all readers that a process waits for."""
        return self._remembered(("staffed", driver, role), lambda: self._staffed(driver, role))

    def gone(self, driver: PartId, role: str) -> DriverStep:
        """A process no longer exists."""
        return self._remembered(
            ("gone", driver, role), lambda: self._with(self.drivers[driver], role, None)
        )

    def wiped(self, driver: PartId) -> DriverStep:
        """A process no longer exists, nor is its Spark checkpoint."""
        return self._remembered(("wiped", driver), lambda: self._wiped(driver))

    def moved(self, driver: PartId) -> PartId:
        """A host whose Spark checkpoint has moved along; its processes and its report have not."""
        left = replace(self.drivers[driver], report=None, live=None, zombie=None)
        return self.add(left)

    def may_be_copied(self, driver: PartId, broker: PartId) -> bool:
        """Whether a host has read of all clusters, and all that it has logged is committed.

        What of a cluster was delivered that was found after a copy is not delivered again.
        """
        log = self.drivers[driver].log
        held = offset_of(log.last)
        scopes = {s[0] for s in (*held.positions, *held.retained)}
        return log.is_committed and scopes >= {s[0] for s in self._brokers[broker]}

    def restored(self, driver: PartId, copy: PartId) -> PartId:
        """A host with the Spark checkpoint of a copy; 0 while a process of it runs."""
        now = self.drivers[driver]
        if now.live is not None or now.zombie is not None:
            return 0
        return self.add(replace(now, log=self.drivers[copy].log, is_done=False))

    def undead(self, driver: PartId) -> DriverStep:
        """A process is thought dead, and continues."""
        return self._remembered(("undead", driver), lambda: self._undead(driver))

    def report_part(self, driver: PartId) -> PartId:
        """The report document that a driver has written last; 0 if none."""
        part = self._report_parts.get(driver)
        if part is None:
            report = self.drivers[driver].report
            part = self._report_parts[driver] = 0 if report is None else self._add_report(report)
        return part

    # --- computing them ---------------------------------------------------------------------------

    def _remembered(self, name: tuple[Any, ...], compute: Callable[[], DriverStep]) -> DriverStep:
        step = self._steps.get(name)
        if step is None:
            try:
                step = compute()
            except (
                Violation,
                BalancedSourceError,
                LookupError,
                ValueError,
                TypeError,
                AttributeError,
                StopIteration,
            ) as error:
                step = DriverStep(0, 0, f"{type(error).__name__}: {error}")
            self._steps[name] = step
        return step

    def _add_report(self, report: HostReport) -> PartId:
        text = report_document.encode(report, source=UID)
        return self._reports.of(text, lambda t: report_document.decode(t, source=UID))

    def again(self, number: PartId) -> PartId:
        """Return the driver whose query may start again after it has ended."""
        driver = self.drivers[number]
        return self.add(replace(driver, is_done=False)) if driver.is_done else number

    def _start(self, number: PartId, published: PartId, has_seen: bool) -> DriverStep:
        driver, shell = self.drivers[number], self._shell
        if driver.live is not None or driver.is_done:
            return IMPOSSIBLE
        assignment = self._assignments[published] if published else None
        seen = [0] if driver.report is None else [driver.report.incarnation]
        if assignment is not None:
            seen.append(assignment.incarnations.get(driver.name, 0))
        # A replay needs to know how to reach the clusters, so it waits until an assignment is seen.
        newest = assignment if has_seen or driver.log.planned else None
        settings = {} if newest is None else newest.settings
        shell.load(None, name=driver.name, newest=newest, settings=settings, reported=driver.report)
        if not driver.log.is_committed:
            rules.replay(driver.log, shell.plan(driver.log.before, driver.log.last))
        shell.latest(driver.log.last)
        shell.register(max(seen) + 1)
        log = replace(driver.log, is_committed=True)
        place = 0 if newest is None else published if self._is_newest_needed else ANY
        is_stopping = not driver.log.is_committed and is_last(driver.log.last)
        blank = Runner(
            ReaderHost(incarnation=0), driver.log.last, newest=place, is_stopping=is_stopping
        )
        started = replace(driver, log=log, live=self._unload(blank), report=shell.channel.written)
        return DriverStep(self.add(started))

    def _see(self, number: PartId, role: str, assignment: PartId) -> DriverStep:
        driver, runner = self._of(number, role)
        if runner is None:
            return IMPOSSIBLE
        self._load(driver, runner)
        self._shell.runtime._on_assignment(self._assignments[assignment])
        is_newest = self._shell.runtime._seen.assignment is self._assignments[assignment]
        if not self._is_newest_needed:
            assignment = ANY
        after = self._unload(replace(runner, newest=assignment if is_newest else runner.newest))
        return IMPOSSIBLE if key(after) == key(runner) else self._with(driver, role, after)

    def _log(
        self,
        number: PartId,
        role: str,
        broker: PartId,
        delivered: PartId,
        *,
        is_late: bool = False,
    ) -> DriverStep:
        driver, runner = self._of(number, role)
        lives, shell = self._brokers[broker], self._shell
        known = before_recreation(lives) if is_late else None
        if runner is None or runner.is_busy or (is_late and known is None):
            return IMPOSSIBLE
        self._load(driver, runner)
        shell.brokers(lives, self._records(), known=known)
        end = shell.latest(runner.at)
        if end == runner.at:
            after = self._unload(runner)
            return IMPOSSIBLE if key(after) == key(runner) else self._with(driver, role, after)
        rules.adoption(runner.host, offset_of(end))
        if driver.log.last != runner.at or not driver.log.is_committed:
            return self._with(driver, role, None)  # another driver has logged this micro-batch
        planned = shell.plan(runner.at, end)
        sink = rules.delivered_after(
            self.delivered[delivered],
            planned,
            offset_of(end),
            lives,
            known=known,
            may_repeat=self.setting.may_repeat,
        )
        log = Log(before=runner.at, last=end, planned=planned, is_committed=False)
        ready = offset_of(end).parallelism if self.setting.has_executors else 0
        runner = self._unload(replace(runner, at=end, is_busy=True, ready=ready))
        step = self._with(replace(driver, log=log), role, runner)
        return step._replace(delivered=self.add_delivered(sink))

    def _end(self, number: PartId, role: str) -> DriverStep:
        driver, runner = self._of(number, role)
        if runner is None:
            return IMPOSSIBLE
        if runner.is_stopping:
            return self._with(replace(driver, is_done=True), role, None)
        if not (runner.is_busy or runner.host.phase is Phase.STARTING):
            return IMPOSSIBLE
        self._load(driver, runner)
        self._shell.runtime.committed(offset_of(runner.at))
        if driver.log.last == runner.at:
            driver = replace(driver, log=replace(driver.log, is_committed=True))
        after = self._unload(replace(runner, is_busy=False, is_stopping=is_last(runner.at)))
        return self._with(driver, role, after)

    def _report(self, number: PartId, role: str) -> DriverStep:
        driver, runner = self._of(number, role)
        if runner is None:
            return IMPOSSIBLE
        self._load(driver, runner)
        self._shell.write(_sequence(runner))
        after, written = self._unload(runner), self._shell.channel.written
        if written is None or _is_same(driver.report, written):
            return IMPOSSIBLE if key(after) == key(runner) else self._with(driver, role, after)
        return self._with(replace(driver, report=written), role, after)

    def _staffed(self, number: PartId, role: str) -> DriverStep:
        driver, runner = self._of(number, role)
        if runner is None or not self.setting.has_executors or not runner.newest:
            return IMPOSSIBLE
        wanted = self._assignments[runner.newest].parallelism
        if runner.ready >= wanted:
            return IMPOSSIBLE
        return self._with(driver, role, replace(runner, ready=wanted))

    def _wiped(self, number: PartId) -> DriverStep:
        return DriverStep(self.add(replace(self.drivers[number], live=None, log=Log())))

    def _undead(self, number: PartId) -> DriverStep:
        driver = self.drivers[number]
        if driver.zombie is not None:
            return IMPOSSIBLE
        return DriverStep(self.add(replace(driver, live=None, zombie=driver.live)))

    # --- the shell --------------------------------------------------------------------------------

    def _load(self, driver: Driver, runner: Runner) -> None:
        self._shell.load(
            runner.host,
            name=driver.name,
            newest=self._assignments[runner.newest] if runner.newest else None,
            settings=runner.settings,
            is_reported=runner.is_told,
            reported=driver.report,
            has_closed=runner.has_closed,
            ready=runner.ready if self.setting.has_executors else None,
        )

    def _unload(self, runner: Runner) -> Runner:
        """The process after a step; what is told matters only where something waits for it."""
        runtime = self._shell.runtime
        host, said = runtime._host, runtime._reported
        assert host is not None
        is_told = said is not None and (said.durable, said.committed) == (
            host.durable,
            host.committed,
        )
        return replace(
            runner,
            host=host,
            settings=runtime._seen.joined,
            is_told=is_told and self.setting.is_bounded,
            has_closed=self._shell.planner._has_closed,
        )

    @property
    def _is_newest_needed(self) -> bool:
        """Whether settings, attributes or the end may differ between assignments.

        Else the first one will do.
        """
        setting = self.setting
        may_differ = (
            setting.budget.recreations or setting.budget.restores or len(setting.variants) > 1
        )
        return bool(may_differ or setting.is_bounded or setting.has_executors)

    def _records(self) -> int:
        """Records of each split; a bounded source has stopped looking before the newest came."""
        return self.setting.records + self.setting.is_bounded

    def _of(self, number: PartId, role: str) -> tuple[Driver, Runner | None]:
        driver = self.drivers[number]
        return driver, driver.live if role == "live" else driver.zombie

    def _with(self, driver: Driver, role: str, runner: Runner | None) -> DriverStep:
        changed = replace(driver, live=runner) if role == "live" else replace(driver, zombie=runner)
        return DriverStep(self.add(changed))


def _is_same(before: HostReport | None, after: HostReport) -> bool:
    return before is not None and key(replace(before, sequence=0)) == key(
        replace(after, sequence=0)
    )


def _sequence(runner: Runner) -> int:
    """A sequence number that grows as the host does, and tells nothing of the way that it went.

    Each incarnation counts again, so nothing may depend on whose numbers are larger: here those of
    older ones are.
    """
    host, durable = runner.host, runner.host.durable
    progress = (
        4 * sum(int(p or 0) for p in durable.positions.values())
        + (not runner.is_busy)
        + 2 * is_last(runner.at)
    )
    age = 1_000 - host.incarnation
    return ((1_000 * age + host.lineage) * 1_000 + durable.epoch) * 1_000 + progress + 2
