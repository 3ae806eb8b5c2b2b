"""The drivers of a walk, and the Spark operator that starts them."""

import enum
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from balanced_source.api import SplitId
from balanced_source.documents import assignment as assignment_document
from balanced_source.host import is_finished
from balanced_source_operator.resources.kinds import KUBEFLOW_APPLICATION, NAME_LABEL, POD
from support.cluster_story import NAMESPACE, Documents, Story
from support.lost_hosts import SOURCE
from support.virtual_time import clock
from support.world import UID, Driver
from walks.gaps import Gaps

LAUNCH_DELAYS: Final = (0, 2, 6, 20)
"""Seconds from an application to its driver."""

GRACE_PERIODS: Final = (0, 0, 4, 12)
"""Seconds that a driver runs on after its application was deleted."""

FIRST_BATCHES: Final = (0, 0, 4, 8)
"""Seconds that the first micro-batch of a driver with splits takes: executors start, tasks import.
"""


class Death(enum.StrEnum):
    """Where in a micro-batch a driver dies."""

    BETWEEN = "between"
    LOGGED = "logged"
    DELIVERED = "delivered"


class Mode(enum.Enum):
    """What a driver process does."""

    WORKS = enum.auto()
    HANGS = enum.auto()
    CUT_OFF = enum.auto()


class Link(Documents):
    """A driver's view of its documents, which can be cut off."""

    frozen: str | None = None
    is_cut = False
    reported_at = 0.0

    @property
    def assignment(self) -> str | None:
        return self.frozen if self.is_cut else super().assignment

    def cut(self) -> None:
        """Let the driver see the present assignment from now on, and lose its reports."""
        self.frozen = super().assignment
        self.is_cut = True

    def __setitem__(self, host: str, text: str) -> None:
        if not self.is_cut:
            self.reported_at = clock()
            super().__setitem__(host, text)


@dataclass
class Process:
    """A driver process.

    Attributes:
        application: name of the application that it belongs to.
        uid: of this application.
        mode: what the process does.
        ends_at: when it ends because its application is gone; None as long as that exists.
        has_begun: whether it has planned a micro-batch with splits.
        busy_until: when the tasks of its first one are done.
    """

    application: str
    uid: str
    mode: Mode = Mode.WORKS
    ends_at: float | None = None
    has_begun: bool = False
    busy_until: float = 0.0

    @property
    def pod(self) -> str:
        return f"{self.application}-driver-{self.uid}"


@dataclass
class Cast:
    """All drivers of a story.

    Attributes:
        random: decides what drivers and the Spark operator do.
        drivers: by host, with their checkpoints, also of those that do not run.
        processes: driver processes that run, by host.
        down: hosts that cannot start a driver, and the state that their applications get.
        broken_images: images with which no driver starts.
        broken_on_host: hosts and images with which the host's driver does not start.
        has_traffic: whether new records arrive.
    """

    story: Story
    random: random.Random
    drivers: dict[str, Driver] = field(default_factory=dict)
    links: dict[str, Link] = field(default_factory=dict)
    processes: dict[str, Process] = field(default_factory=dict)
    down: dict[str, str] = field(default_factory=dict)
    broken_images: set[str] = field(default_factory=set)
    broken_on_host: set[tuple[str, str]] = field(default_factory=set)
    has_traffic: bool = True
    gaps: Gaps = field(default_factory=Gaps)
    _launches: dict[str, float] = field(default_factory=dict)

    def step(self) -> None:
        """Let new records arrive, and let the Spark operator and all drivers do what is due."""
        if self.has_traffic:
            splits = sorted(self.story.broker.ends)
            for _ in range(2):
                self.story.broker.ends[self.random.choice(splits)] += 1
        applications = self.applications()
        self._end_orphans(applications)
        for host, application in applications.items():
            self._see_application(host, application)
        for host in sorted(self.processes):
            self._run(host)
        self._sample_gaps()

    # --- what the Spark operator does -------------------------------------------------------------

    def applications(self) -> dict[str, Mapping[str, Any]]:
        """Return the manifest of each host's application."""
        found = self.story.server.select(KUBEFLOW_APPLICATION, NAMESPACE)
        return {SOURCE.host_of(m["metadata"]["name"]): m for m in found}

    def set_state(self, application: str, state: str, message: str = "") -> None:
        """Write the state of an application."""
        status = {"applicationState": {"state": state, "errorMessage": message}}
        change = {"status": status}
        self.story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, application, change)

    def _end_orphans(self, applications: Mapping[str, Mapping[str, Any]]) -> None:
        """End the drivers whose application is gone, some of them after a grace period."""
        for host, process in list(self.processes.items()):
            application = applications.get(host)
            if application is not None and application["metadata"]["uid"] == process.uid:
                continue
            if process.ends_at is None:
                process.ends_at = clock() + self.random.choice(GRACE_PERIODS)
            if clock() >= process.ends_at:
                self.kill(host, self.random.choice([Death.BETWEEN, *Death]))

    def _see_application(self, host: str, application: Mapping[str, Any]) -> None:
        name, uid = application["metadata"]["name"], application["metadata"]["uid"]
        state = application.get("status", {}).get("applicationState", {}).get("state")
        if state is None and not self._can_start(host, application):
            self.set_state(name, self.down.get(host, "FAILED"), "the driver cannot start")
        elif host in self.processes:
            return
        elif state is None:
            if uid not in self._launches:
                self._launches[uid] = clock() + self.random.choice(LAUNCH_DELAYS)
            if clock() >= self._launches[uid]:
                self._launch(host, name, uid)
        elif state in {"SUBMITTED", "PENDING_RERUN"} and self._can_start(host, application):
            self._launch(host, name, uid)

    def _can_start(self, host: str, application: Mapping[str, Any]) -> bool:
        image = application["spec"]["image"]
        is_broken = image in self.broken_images or (host, image) in self.broken_on_host
        return host not in self.down and not is_broken

    def _launch(self, host: str, application: str, uid: str) -> None:
        process = self.processes[host] = Process(application, uid)
        labels = {
            NAME_LABEL: "orders",
            "spark-role": "driver",
            "sparkoperator.k8s.io/app-name": application,
        }
        metadata = {"name": process.pod, "namespace": NAMESPACE, "labels": labels}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        self.story.server.add(POD, {**pod, "status": {"phase": "Running"}})
        self.set_state(application, "RUNNING")
        driver = self._driver(host)
        self.links[host].is_cut = False
        driver.start()

    def _driver(self, host: str) -> Driver:
        if host not in self.drivers:
            link: Any = Link(self.story.server, host)
            self.links[host] = link
            self.drivers[host] = Driver(link, self.story.broker, host)
            for driver in self.drivers.values():
                driver.all_hosts = list(self.drivers.values())
        return self.drivers[host]

    # --- what happens to drivers ------------------------------------------------------------------

    def kill(self, host: str, death: Death) -> None:
        """End the driver process of a host, if it has one."""
        process = self.processes.pop(host, None)
        if process is None:
            return
        driver = self.drivers[host]
        self.links[host].is_cut = False
        is_idle = driver.committed == len(driver.offsets) and process.mode is Mode.WORKS
        if death is not Death.BETWEEN and is_idle:
            driver.see_assignment()
            driver.batch(die=death)
        self.story.server.remove(POD, NAMESPACE, process.pod)

    def cut_off(self, host: str) -> None:
        """Take the API server from a driver, if the host has one."""
        if host in self.processes:
            self.processes[host].mode = Mode.CUT_OFF
            self.links[host].cut()

    def release(self, host: str) -> None:
        """Let a driver that hangs or is cut off work again."""
        if host in self.processes and self.processes[host].mode is not Mode.WORKS:
            self.processes[host].mode = Mode.WORKS
            self.links[host].is_cut = False

    # --- what drivers do --------------------------------------------------------------------------

    def _run(self, host: str) -> None:
        if self._reads(host):
            driver = self.drivers[host]
            driver.see_assignment()
            self._run_batch(self.processes[host], driver)
            driver.report()

    def _run_batch(self, process: Process, driver: Driver) -> None:
        if not process.has_begun:
            self._begin(process, driver)
        elif clock() >= process.busy_until:
            driver.committed = len(driver.offsets)
            self.read(driver)

    def _begin(self, process: Process, driver: Driver) -> None:
        """Run what may be the first micro-batch with splits, which takes its time."""
        driver.batch(die=Death.DELIVERED)
        process.has_begun = driver.holds_splits
        if process.has_begun:
            process.busy_until = clock() + self.random.choice(FIRST_BATCHES)
        else:
            driver.committed = len(driver.offsets)

    def _reads(self, host: str) -> bool:
        """Whether a driver runs micro-batches; one that cannot report ends them in time."""
        mode, link = self.processes[host].mode, self.links[host]
        if mode is Mode.CUT_OFF:
            if link.frozen is None:
                return False
            within = assignment_document.decode(link.frozen, source=UID).report_within
            return within is None or clock() - link.reported_at < within
        return mode is Mode.WORKS

    def read(self, driver: Driver) -> None:
        """Run a micro-batch, mostly: of everything, or of a random part."""
        if self.random.random() >= 0.85:
            return
        if self.random.random() >= 0.3:
            driver.batch()
            return
        held, ends = driver.host.durable.positions, self.story.broker.ends
        upto = {
            split: self.random.randint(min(int(held.get(split) or 0), end), end)
            for split, end in ends.items()
        }
        driver.batch(upto=upto)

    # --- what is seen -----------------------------------------------------------------------------

    def splits_read(self) -> Counter[SplitId]:
        """Return by how many driver processes each split is held, whatever they do."""
        return Counter(
            split for host in self.processes for split in self.drivers[host].host.durable.owners
        )

    def deliveries(self) -> Counter[tuple[SplitId, int]]:
        """Return how many drivers have delivered each record."""
        return Counter(record for driver in self.drivers.values() for record in driver.delivered)

    def lost_records(self) -> list[tuple[SplitId, int]]:
        """Return the records that no driver has delivered."""
        broker, delivered = self.story.broker, self.deliveries()
        return [
            (split, offset)
            for split, end in broker.ends.items()
            for offset in range(broker.begins[split], end)
            if (split, offset) not in delivered
        ]

    def _sample_gaps(self) -> None:
        read = {
            split
            for host, process in self.processes.items()
            if process.mode is Mode.WORKS
            for split in self.drivers[host].planned
        }
        is_operated = any(not operator.client.is_dead for operator in self.story.operators)
        self.gaps.sample(self.story.broker.ends, read, now=clock(), counts=is_operated)


@dataclass
class EndingCast(Cast):
    """Drivers of a bounded source: a query ends when its host has read everything.

    Attributes:
        pace: how probable it is that a driver reads records of a split in a step.
    """

    pace: float = 1.0

    def _run(self, host: str) -> None:
        super()._run(host)
        process = self.processes[host]
        if process.mode is Mode.WORKS and self._has_ended(host):
            driver = self.drivers[host]
            driver.batch()  # nothing is left: it notes what is committed
            driver.report()
            self._complete(host)

    def read(self, driver: Driver) -> None:
        """Run a micro-batch of up to two records of each split."""
        held = driver.host.durable.positions
        upto = {
            split: min(end, int(held.get(split) or 0) + self._records())
            for split, end in self.story.broker.ends.items()
        }
        driver.batch(upto=upto)

    def _records(self) -> int:
        return self.random.randint(0, 2) if self.random.random() < self.pace else 0

    def _has_ended(self, host: str) -> bool:
        driver, text = self.drivers[host], self.links[host].assignment
        if text is None or driver.committed != len(driver.offsets) or not driver.offsets:
            return False
        return is_finished(driver.host.durable, assignment_document.decode(text, source=UID))

    def _complete(self, host: str) -> None:
        """End the driver in order."""
        process = self.processes.pop(host)
        self.story.server.remove(POD, NAMESPACE, process.pod)
        application = self.applications().get(host)
        if application is not None and application["metadata"]["uid"] == process.uid:
            self.set_state(process.application, "COMPLETED")
