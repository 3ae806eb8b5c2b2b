"""Reader hosts in the explored world: the pure machine is the real one, Spark around it is made up.

Spark is reduced to what the protocol sees of it: a micro-batch is logged (from then on a restart replays it, so its
records count as delivered), later it ends; two drivers that share a checkpoint cannot both log the same micro-batch,
the one that comes second dies of it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from balanced_source.documents import report as report_document
from balanced_source.documents import stream_offset
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import BalancedSourceError
from balanced_source.host import Phase, ReaderHost
from proof import rules
from proof.canonical import key
from proof.values import Delivered, Driver, Log, PartId, Runner, Setting, Table, Violation

UID = "uid-1"


class DriverStep(NamedTuple):
    """What a step leads to; `driver` 0: it cannot happen. Or the rule that it breaks."""

    driver: PartId
    delivered: PartId = 0
    problem: str | None = None


IMPOSSIBLE = DriverStep(0)


class DriverSide:
    """Steps of drivers, as functions of parts."""

    def __init__(self, setting: Setting, assignments: Table[Assignment], reports: Table[HostReport]) -> None:
        self.setting = setting
        self.drivers: Table[Driver] = Table()
        self.delivered: Table[Delivered] = Table()
        self._assignments = assignments
        self._reports = reports
        self._steps: dict[tuple[Any, ...], DriverStep] = {}
        self._report_parts: dict[PartId, PartId] = {}

    def add(self, driver: Driver) -> PartId:
        """The part's number."""
        return self.drivers.add(driver, key(driver))

    def add_delivered(self, delivered: Delivered) -> PartId:
        """The part's number."""
        return self.delivered.add(delivered, tuple(sorted(delivered.items())))

    # --- steps --------------------------------------------------------------------------------------------------

    def start(self, driver: PartId, published: PartId, *, has_seen: bool) -> DriverStep:
        """A new process: replays what is logged but not committed, takes the next incarnation, registers."""
        return self._remembered(
            ("start", driver, published, has_seen), lambda: self._start(driver, published, has_seen)
        )

    def see(self, driver: PartId, role: str, assignment: PartId) -> DriverStep:
        """A process sees an assignment document, new or old."""
        return self._remembered(("see", driver, role, assignment), lambda: self._see(driver, role, assignment))

    def log(self, driver: PartId, role: str, exists: frozenset[Any], delivered: PartId) -> DriverStep:
        """A process plans a micro-batch, and Spark logs it."""
        return self._remembered(
            ("log", driver, role, exists, delivered), lambda: self._log(driver, role, exists, delivered)
        )

    def end(self, driver: PartId, role: str) -> DriverStep:
        """A micro-batch ends: its tasks are done, Spark commits it and asks for the next one; or asks once more."""
        return self._remembered(("end", driver, role), lambda: self._end(driver, role))

    def report(self, driver: PartId, role: str) -> DriverStep:
        """A process writes its report document."""
        return self._remembered(("report", driver, role), lambda: self._report(driver, role))

    def gone(self, driver: PartId, role: str) -> DriverStep:
        """A process is no more."""
        return self._remembered(("gone", driver, role), lambda: self._with(self.drivers[driver], role, None))

    def wiped(self, driver: PartId) -> DriverStep:
        """A process is no more, nor is its Spark checkpoint."""
        return self._remembered(("wiped", driver), lambda: self._wiped(driver))

    def undead(self, driver: PartId) -> DriverStep:
        """A process is thought dead, and goes on."""
        return self._remembered(("undead", driver), lambda: self._undead(driver))

    def report_part(self, driver: PartId) -> PartId:
        """The report document that a driver has written last; 0 if none."""
        part = self._report_parts.get(driver)
        if part is None:
            report = self.drivers[driver].report
            part = self._report_parts[driver] = 0 if report is None else self._add_report(report)
        return part

    # --- computing them -----------------------------------------------------------------------------------------

    def _remembered(self, name: tuple[Any, ...], compute: Callable[[], DriverStep]) -> DriverStep:
        step = self._steps.get(name)
        if step is None:
            try:
                step = compute()
            except (Violation, BalancedSourceError, LookupError, ValueError, TypeError, AttributeError) as error:
                step = DriverStep(0, 0, f"{type(error).__name__}: {error}")
            self._steps[name] = step
        return step

    def _add_report(self, report: HostReport) -> PartId:
        text = report_document.encode(report, source=UID)
        return self._reports.of(text, lambda t: report_document.decode(t, source=UID))

    def _start(self, number: PartId, published: PartId, has_seen: bool) -> DriverStep:
        driver = self.drivers[number]
        if driver.live is not None:
            return IMPOSSIBLE
        assignment = self._assignments[published] if published else None
        seen = [0] if driver.report is None else [driver.report.incarnation]
        if assignment is not None:
            seen.append(assignment.incarnations.get(driver.name, 0))
        host = ReaderHost(name=driver.name, incarnation=max(seen) + 1)
        if has_seen and assignment is not None:
            host = replace(host, lineage=assignment.lineage)
        host = host.on_committed(driver.log.last)
        log = replace(driver.log, is_committed=True)
        started = replace(driver, log=log, live=Runner(host))
        return DriverStep(self.add(replace(started, report=report_of(host, is_busy=False))))

    def _see(self, number: PartId, role: str, assignment: PartId) -> DriverStep:
        driver, runner = self._of(number, role)
        if runner is None:
            return IMPOSSIBLE
        host = runner.host.on_assignment(self._assignments[assignment])
        return IMPOSSIBLE if host == runner.host else self._with(driver, role, replace(runner, host=host))

    def _log(self, number: PartId, role: str, exists: frozenset[Any], delivered: PartId) -> DriverStep:
        driver, runner = self._of(number, role)
        if runner is None or runner.is_busy:
            return IMPOSSIBLE
        host, base = runner.host.base()
        if base is None:
            return IMPOSSIBLE
        _check_adoption(host, base)
        end = self._advanced(base, exists)
        if end.epoch == host.durable.epoch and end.positions == host.durable.positions:
            return IMPOSSIBLE
        if key(driver.log.last) != key(host.durable) or not driver.log.is_committed:
            return self._with(driver, role, None)  # another driver has logged this micro-batch
        end = stream_offset.from_json(stream_offset.to_json(end))
        after = rules.delivered_after(self.delivered[delivered], driver.log.last, end)
        logged = replace(driver, log=Log(before=driver.log.last, last=end, is_committed=False))
        step = self._with(logged, role, Runner(host.on_planned(end), is_busy=True))
        return step._replace(delivered=self.add_delivered(after))

    def _end(self, number: PartId, role: str) -> DriverStep:
        driver, runner = self._of(number, role)
        if runner is None or not (runner.is_busy or runner.host.phase is Phase.STARTING):
            return IMPOSSIBLE
        host, log = runner.host.on_committed(runner.host.durable), driver.log
        if key(log.last) == key(host.durable):
            log = replace(log, is_committed=True)
        return self._with(replace(driver, log=log), role, Runner(host))

    def _report(self, number: PartId, role: str) -> DriverStep:
        driver, runner = self._of(number, role)
        if runner is None or (report := report_of(runner.host, is_busy=runner.is_busy)) is None:
            return IMPOSSIBLE
        if driver.report is not None and driver.report.incarnation > report.incarnation:
            return self._with(driver, role, replace(runner, host=runner.host.on_fenced()))
        if driver.report is not None and key(driver.report) == key(report):
            return IMPOSSIBLE
        return DriverStep(self.add(replace(driver, report=report)))

    def _wiped(self, number: PartId) -> DriverStep:
        return DriverStep(self.add(replace(self.drivers[number], live=None, log=Log())))

    def _undead(self, number: PartId) -> DriverStep:
        driver = self.drivers[number]
        if driver.zombie is not None:
            return IMPOSSIBLE
        return DriverStep(self.add(replace(driver, live=None, zombie=driver.live)))

    def _of(self, number: PartId, role: str) -> tuple[Driver, Runner | None]:
        driver = self.drivers[number]
        return driver, driver.live if role == "live" else driver.zombie

    def _with(self, driver: Driver, role: str, runner: Runner | None) -> DriverStep:
        changed = replace(driver, live=runner) if role == "live" else replace(driver, zombie=runner)
        return DriverStep(self.add(changed))

    def _advanced(self, base: StreamOffset, exists: frozenset[Any]) -> StreamOffset:
        """At most one more record of each split; of one that is gone, none."""
        top = self.setting.records
        ends = {s: min(int(p or 0) + (s in exists), max(top, int(p or 0))) for s, p in base.positions.items()}
        return replace(base, positions=ends)


def _check_adoption(host: ReaderHost, base: StreamOffset) -> None:
    """Rule 10: an incarnation adopts what is meant for it."""
    assignment = host.assignment
    if assignment is None or base.epoch == host.durable.epoch:
        return
    addressed = assignment.incarnations.get(host.name)
    if addressed != host.incarnation or assignment.lineage < host.lineage:
        raise Violation(f"rule 10, fencing: incarnation {host.incarnation} adopts what is meant for {addressed}")
    if base.epoch < host.durable.epoch:
        raise Violation(f"rule 10, fencing: epoch goes back from {host.durable.epoch} to {base.epoch}")


def report_of(host: ReaderHost, *, is_busy: bool) -> HostReport | None:
    """The report, with a sequence number that grows as the host does, and tells nothing of the way that it went.

    Each incarnation counts anew, so nothing may depend on whose numbers are larger: here those of older ones are.
    """
    if host.phase in (Phase.STARTING, Phase.FENCED):
        return None
    durable = host.durable
    progress = 2 * sum(int(p or 0) for p in durable.positions.values()) + (not is_busy)
    age = 1_000 - host.incarnation
    return host.report(sequence=((1_000 * age + host.lineage) * 1_000 + durable.epoch) * 1_000 + progress + 1)
