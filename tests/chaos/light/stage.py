"""The processes of one schedule.

Local mode as an operator, the driver, and the files that they share.

What a deployment does is done here too: a process that ends by itself is started again. What a user
does is done as the product's messages say: a state that cannot be read is deleted, and after data
loss was reported onDataLoss becomes Continue.
"""

import contextlib
import json
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml

from balanced_source.documents import assignment as assignment_document
from balanced_source.documents.assignment import Assignment
from balanced_source.errors import StateError
from balanced_source_adapters.folder import assignment_path, read_text, state_path
from chaos.light.brokers import Brokers
from chaos.light.sink import COLUMNS
from chaos.light.zygote import Request, Zygote
from chaos.world import World
from support.builders import spec_json
from testbed.processes import Child, Supervisor

_AGAIN: Final = 0.5
"""Seconds between two starts of a process that ends by itself."""

_ENTRIES: Final = {
    "operator": "balanced_source_operator.cli:app",
    "driver": "chaos.light.driver:main",
}


class Stage:
    """Starts, watches and tampers with everything of one schedule but the brokers.

    Args:
        world: what is read.
        folder: of this schedule.
        zygote: starts the processes.
        spec: of the BalancedSource at the start.
        options: of the query.
        schema: columns of the rows as Spark has them: name → type; empty where tasks need none.
    """

    def __init__(
        self,
        world: World,
        folder: Path,
        zygote: Zygote,
        *,
        spec: dict[str, Any],
        options: Mapping[str, str],
        schema: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._zygote = zygote
        self.world = world
        self.folder = folder
        self.documents = folder / "documents"
        self.spec = spec
        self.wants_operator = not world.is_embedded
        self.wants_driver = True
        self.failures: list[str] = []
        self.user_actions: list[str] = []
        self._supervisor = Supervisor(folder)
        self._driver: Child | None = None
        self._operator: Child | None = None
        self._next_start = {"driver": 0.0, "operator": 0.0}
        self.is_finished = False
        self.documents.mkdir(parents=True, exist_ok=True)
        self._write_driver_settings(options, schema)
        self.write_spec()

    # --- the user ---------------------------------------------------------------------------------

    def write_spec(self) -> None:
        """Let the operator see the spec as it is now."""
        text = yaml.safe_dump({"spec": self.spec})
        partial = self.folder / ".source.yaml"
        partial.write_text(text)
        partial.replace(self.folder / "source.yaml")

    @property
    def kafka(self) -> dict[str, Any]:
        """``spec.source.kafka``."""
        found: dict[str, Any] = self.spec["source"]["kafka"]
        return found

    def accept_data_loss(self, why: str) -> None:
        """Decide as a user who was told about data loss."""
        if self.world.is_embedded:
            settings = json.loads((self.folder / "driver.json").read_text())
            settings["options"]["failOnDataLoss"] = "false"
            (self.folder / "driver.json").write_text(json.dumps(settings))
        self.user_actions.append(f"onDataLoss: Continue, because {why}")
        self.kafka["onDataLoss"] = "Continue"
        self.write_spec()

    # --- processes --------------------------------------------------------------------------------

    def tend(self) -> None:
        """Start what should run and does not."""
        if self.wants_operator and not self.is_running("operator") and self._is_due("operator"):
            self._check_operator()
            self._operator = self._start(
                "operator",
                "local",
                "-f",
                str(self.folder / "source.yaml"),
                "--dir",
                str(self.documents),
            )
        if (
            self.wants_driver
            and not self.is_finished
            and not self.is_running("driver")
            and self._is_due("driver")
        ):
            self._check_driver()
            if not self.is_finished:
                self._driver = self._start("driver", str(self.folder))

    def is_running(self, name: str) -> bool:
        """Return whether `driver` or `operator` runs."""
        child = self._child(name)
        return child is not None and child.alive()

    def pid(self, name: str) -> int | None:
        """Return its process id; None if it does not run."""
        child = self._child(name)
        return child.pid if child is not None and child.alive() else None

    def kill(self, name: str) -> None:
        """SIGKILL `driver` or `operator`, and what they have started."""
        child = self._child(name)
        if child is not None:
            self._supervisor.kill(child)
            self._forget(name)

    def send(self, name: str, number: signal.Signals) -> None:
        """Send a signal to `driver` or `operator`."""
        child = self._child(name)
        if child is not None:
            child.signal(number)

    def stop_driver(self) -> None:
        """End the query in peace, as `suspend` does."""
        self.wants_driver = False
        if self._driver is not None:
            self._supervisor.stop(self._driver, grace=15)
            self._check_driver()

    def close(self) -> None:
        """End everything."""
        self.wants_driver = self.wants_operator = False
        self._supervisor.stop_all(grace=3)

    # --- what is there to see ---------------------------------------------------------------------

    def assignment(self) -> Assignment | None:
        """Return what is published; None if nothing is, or it cannot be read."""
        try:
            text = read_text(assignment_path(self.documents))
            return assignment_document.decode(text) if text is not None else None
        except StateError:
            return None

    def events(self) -> list[dict[str, Any]]:
        """Return what drivers have noted."""
        file, found = self.folder / "history.jsonl", []
        for line in file.read_text().splitlines() if file.exists() else ():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return found

    def committed(self) -> dict[tuple[str, str, int], tuple[str | None, int]]:
        """Return how far the newest committed micro-batch is: split → topic id and next offset."""
        events = self.events()
        done = {event["batch"] for event in events if event["event"] == "committed"}
        found: dict[tuple[str, str, int], tuple[str | None, int]] = {}
        for event in events:
            if event["event"] == "logged" and event["batch"] in done:
                found.update({(c, t, p): (i, to) for c, t, p, i, _, to in event["ranges"]})
        return found

    def log(self, name: str) -> str:
        """Return all that `driver` or `operator` has ever written."""
        file = self.folder / "logs" / f"{name}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    # --- inside -----------------------------------------------------------------------------------

    def _start(self, name: str, *arguments: str) -> Child:
        log = self._supervisor.logs / f"{name}.log"
        request = Request(entry=_ENTRIES[name], arguments=arguments, log=log)
        return self._supervisor.take_over(self._zygote.start(name, request))

    def _check_driver(self) -> None:
        """Look why it ended, once.

        Its last line stays the last one until the next run says something.
        """
        if self._driver is None:
            return
        last = self._last_line("driver")
        if last.get("event") == "query failed":
            self.failures.append(last["error"])
            kafka = self.spec["source"].get("kafka", {})
            if _is_loss(last["error"]) and kafka.get("onDataLoss") == "Fail":
                self.accept_data_loss(last["error"])
        self.is_finished |= bool(last.get("is_finished"))
        self._forget("driver")

    def _check_operator(self) -> None:
        """Delete a state that cannot be read, as the message says."""
        tail = self.log("operator")[-2000:]
        if self._operator is not None and "EnumeratorState" in tail:
            self.user_actions.append("state deleted: it could not be read")
            state_path(self.documents).unlink(missing_ok=True)
        self._forget("operator")

    def _child(self, name: str) -> Child | None:
        return self._driver if name == "driver" else self._operator

    def _forget(self, name: str) -> None:
        self._next_start[name] = time.monotonic() + _AGAIN
        if name == "driver":
            self._driver = None
        else:
            self._operator = None

    def _is_due(self, name: str) -> bool:
        return time.monotonic() >= self._next_start[name]

    def _last_line(self, name: str) -> dict[str, Any]:
        for line in reversed(self.log(name).splitlines()[-40:]):
            with contextlib.suppress(ValueError):
                found = json.loads(line)
                if isinstance(found, dict):
                    return found
        return {}

    def _write_driver_settings(self, options: Mapping[str, str], schema: Mapping[str, str]) -> None:
        settings = {
            "options": dict(options),
            "schema": dict(schema),
            "workers": self.world.workers,
            "seed": self.world.seed,
            "drop_share": self.world.drop_share,
        }
        (self.folder / "driver.json").write_text(json.dumps(settings))


def kafka_stage(world: World, brokers: Brokers, folder: Path, zygote: Zygote) -> Stage:
    """Return the stage of a source that reads Kafka."""
    options = _options(world, brokers, folder / "documents")
    return Stage(world, folder, zygote, spec=_spec(world, brokers), options=options)


def _spec(world: World, brokers: Brokers) -> dict[str, Any]:
    ends = {"stoppingOffsets": {"type": "Latest"}} if world.is_bounded else {}
    limits = {"limits": dict(world.limits)} if world.limits else {}
    kafka = {
        "clusters": [
            {"name": name, "bootstrapServers": brokers[name].bootstrap} for name in world.clusters
        ],
        "subscription": {"topicPattern": world.pattern},
        "discovery": {"interval": "0" if world.is_bounded else "1s"},
        "startingOffsets": {"type": "Latest" if world.is_latest else "Earliest"},
        "onDataLoss": world.on_data_loss,
        **ends,
        **limits,
    }
    spec = spec_json(
        parallelism=world.parallelism,
        source={"kafka": kafka},
        assignment={"strategy": world.strategy},
    )
    return dict(spec)


def _options(world: World, brokers: Brokers, documents: Path) -> dict[str, str]:
    shared = {"reader": world.reader, "columns": ",".join(COLUMNS)}
    if world.max_records_per_reader is not None:
        shared["maxRecordsPerReader"] = str(world.max_records_per_reader)
    if not world.is_embedded:
        return {**shared, "assignmentDir": str(documents)}
    (name,) = world.clusters
    return {
        **shared,
        "kafka.bootstrap.servers": brokers[name].bootstrap,
        "subscribePattern": world.pattern,
        "startingOffsets": "latest" if world.is_latest else "earliest",
        "failOnDataLoss": str(world.on_data_loss == "Fail").lower(),
        "discoveryIntervalSeconds": "1",
        "parallelism": str(world.parallelism),
        "strategy": world.strategy,
        **{key: str(value) for key, value in world.limits.items()},
    }


def _is_loss(error: str) -> bool:
    """Whether an error says that it is about data loss, by what a user can do about it."""
    return "onDataLoss" in error or "failOnDataLoss" in error
