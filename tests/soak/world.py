"""What a soak runs in.

API server, broker with load, the operator, and the process of all drivers.
"""

import contextlib
import json
import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import psutil

from soak.slopes import Sample
from support.builders import spec_json
from support.story.load import Load
from support.story.operator_process import OperatorProcess
from testbed.builds import SPARK_OPERATOR_FILES, Builder
from testbed.control_plane import ControlPlane
from testbed.kafka import KafkaCluster
from testbed.processes import Child
from testbed.progress import Progress
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

PARTITIONS: Final = 6
"""Of each topic."""

PARALLELISM: Final = range(1, 7)
"""Numbers of readers that rescales choose from."""

_AT_ONCE: Final = 8
"""Patches that are under way at one time."""

_START: Final = 300.0
_MIB: Final = 1 << 20


class World:
    """See the module; a context manager.

    Args:
        folder: gets all files.
        sources: how many.
        workers: processes that read.
        rate: records per second, over all sources.
        interval: seconds between two micro-batches of a source, at least.
        reader: `auto`, `native` or `python`.
        progress: told about each step of the start.
    """

    def __init__(
        self,
        folder: Path,
        *,
        sources: int,
        workers: int,
        rate: int,
        interval: float,
        reader: str,
        progress: Progress,
    ) -> None:
        self._folder = folder
        self._names = [f"source-{number:02}" for number in range(sources)]
        self._settings = {"workers": workers, "interval": interval}
        self._reader = reader
        self._rate = rate
        self._progress = progress
        self._stack = contextlib.ExitStack()
        self.failed = 0
        self.rows = 0

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            crds = [
                Builder().ensure(SPARK_OPERATOR_FILES)[SPARK_OPERATOR_FILES] / "crds",
                CHECKOUT / "crds",
            ]
            plane = ControlPlane(self._folder / "plane", crds=crds, progress=self._progress)
            self._plane = stack.enter_context(plane)
            self._kafka = stack.enter_context(
                KafkaCluster("main", self._folder / "kafka", progress=self._progress)
            )
            self._operator = OperatorProcess(
                self._plane, settings={"STUCK_AFTER_SECONDS": "31536000"}
            )
            with self._progress.step(f"start the operator with {len(self._names)} sources"):
                self._operator.start()
                stack.callback(self._operator.stop)
                self._make_sources()
            self._driver = self._start_driver()
            stack.callback(self._plane.supervisor.stop, self._driver)
            self._load = stack.enter_context(
                Load(
                    self._kafka.bootstrap,
                    rate=self._rate,
                    topics=tuple(self._names),
                    settings={"log_level": 0},
                )
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def produced(self) -> int:
        """Records that the broker has acknowledged."""
        return self._load.produced

    def wait_until_all_read(self) -> None:
        """Wait until a micro-batch of every source has run."""
        with self._progress.step("wait until all sources are read"):
            wait_until(
                lambda: self._look_at_driver() and self.rows > 0, _START, "the first records"
            )
            wait_until(self._all_adopted, _START, "all sources to be read", interval=2.0)

    def rescale(self, dice: random.Random) -> int:
        """Give a source another number of readers, and return 1."""
        self._give(dice.choice(self._names), dice.choice(PARALLELISM))
        return 1

    def rescale_all(self, dice: random.Random) -> int:
        """Give all sources other numbers of readers at about one time, and return how many."""
        choices = [dice.choice(PARALLELISM) for _ in self._names]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(self._give, self._names, choices))
        return len(choices)

    def _give(self, name: str, parallelism: int) -> None:
        patch = json.dumps({"spec": {"parallelism": parallelism}})
        self._plane.kubectl("patch", f"bsrc/{name}", "--type=merge", "-p", patch)

    def sample(self, at: float) -> Sample:
        """Look at all processes; `at` in hours since the start."""
        self._look_at_driver()
        driver = psutil.Process(self._driver.pid)
        workers = [p for p in driver.children() if "spawn_main" in " ".join(p.cmdline())]
        processes = {"operator": psutil.Process(self._operator.pid), "driver": driver}
        processes |= {
            f"worker-{n}": p for n, p in enumerate(sorted(workers, key=lambda p: p.create_time()))
        }
        figures = {name: _figures(process) for name, process in processes.items()}
        return Sample(
            at=at,
            processes=figures,
            requests=self._requests(),
            behind=max(0, self.produced - self.rows),
        )

    def _make_sources(self) -> None:
        self._plane.kubectl("create", "serviceaccount", "spark")
        self._kafka.admin.create_topics(dict.fromkeys(self._names, PARTITIONS))
        for name in self._names:
            self._plane.apply(self._manifest(name))
        wait_until(self._all_have_applications, _START, "applications of all sources", interval=1.0)

    def _manifest(self, name: str) -> dict[str, Any]:
        kafka = {
            "clusters": [{"name": "main", "bootstrapServers": self._kafka.bootstrap}],
            "subscription": {"topics": [name]},
            "startingOffsets": {"type": "Earliest"},
            "discovery": {"interval": "10s"},
        }
        return {
            "apiVersion": "balancedsource.io/v1alpha1",
            "kind": "BalancedSource",
            "metadata": {"name": name, "namespace": "default"},
            "spec": spec_json(source={"kafka": kafka}, parallelism=2),
        }

    def _items(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = json.loads(self._plane.kubectl("get", "bsrc", "-o", "json"))[
            "items"
        ]
        return items

    def _all_have_applications(self) -> bool:
        return all(
            item.get("status", {}).get("application", {}).get("name") for item in self._items()
        )

    def _all_adopted(self) -> bool:
        return all(item.get("status", {}).get("acknowledgedEpoch") for item in self._items())

    def _start_driver(self) -> Child:
        uids = {item["metadata"]["name"]: item["metadata"]["uid"] for item in self._items()}
        sources = [
            {"source": name, "namespace": "default", "uid": uids[name], "reader": self._reader}
            for name in self._names
        ]
        file = self._folder / "driver.json"
        file.write_text(json.dumps({**self._settings, "sources": sources}))
        paths = [CHECKOUT / "tests", CHECKOUT / "operator" / "src", CHECKOUT / "spark_app" / "src"]
        environment = {
            **os.environ,
            "KUBECONFIG": str(self._plane.kubeconfig()),
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
        }
        return self._plane.supervisor.start(
            "driver", [sys.executable, "-m", "soak.driver", str(file)], env=environment
        )

    def _look_at_driver(self) -> bool:
        """Take over the figures of the newest line that the driver has written."""
        self._driver.check()
        lines = [
            line
            for line in self._driver.log.read_text().splitlines()
            if line.startswith('{"sources"')
        ]
        if not lines:
            return False
        told = json.loads(lines[-1])
        self.rows, self.failed = told["rows"], told["failed"]
        return True

    def _requests(self) -> float:
        text = self._plane.kubectl("get", "--raw", "/metrics")
        counts = (line for line in text.splitlines() if line.startswith("apiserver_request_total{"))
        return sum(float(line.rsplit(" ", 1)[1]) for line in counts)


def _figures(process: psutil.Process) -> dict[str, float]:
    with process.oneshot():
        return {
            "mib": process.memory_info().rss / _MIB,
            "threads": float(process.num_threads()),
            "fds": float(process.num_fds()),
        }
