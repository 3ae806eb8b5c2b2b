"""What the measurement runs in: API server with an audit log, a broker, and the operator."""

import contextlib
import json
import time
import urllib.request
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import psutil

from balanced_source_operator.resources.kinds import BALANCED_SOURCE
from benchmarks.operator_scale.api import Api
from support.builders import spec_json
from support.story.operator_process import OperatorProcess
from testbed.builds import SPARK_OPERATOR_FILES, Builder
from testbed.control_plane import ADMIN, ControlPlane
from testbed.kafka import KafkaCluster
from testbed.ports import PortPool
from testbed.progress import Progress
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

NAMESPACE: Final = "default"
TOPICS: Final = 20
PARTITIONS: Final = 6
FIRST_READERS: Final = 2
"""Readers of a new source."""
USER: Final = "bench-operator"

_MIB: Final = 1 << 20
_AUDIT: Final = "audit.log"
_AUTOSCALING: Final = {"minReaders": FIRST_READERS, "maxReaders": PARTITIONS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The operator's process at one moment."""

    at: float
    cpu: float
    mib: float
    threads: int
    connections: int
    requests: Counter[str]


class World:
    """A context manager.

    Args:
        folder: gets all files.
        progress: told about each step of the start.
        autoscaling: whether the sources have `spec.autoscaling`.
    """

    def __init__(self, folder: Path, *, progress: Progress, autoscaling: bool = False) -> None:
        self._folder = folder
        self._of_spec = {"autoscaling": _AUTOSCALING} if autoscaling else {}
        self._progress = progress
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            crds = [
                Builder().ensure(SPARK_OPERATOR_FILES)[SPARK_OPERATOR_FILES] / "crds",
                CHECKOUT / "crds",
            ]
            self.plane = stack.enter_context(
                ControlPlane(self._folder / "plane", crds=crds, progress=self._progress)
            )
            self._audit = self._folder / _AUDIT
            self._start_audit()
            self.kafka = stack.enter_context(
                KafkaCluster("main", self._folder / "kafka", progress=self._progress)
            )
            self.kafka.admin.create_topics(
                {f"topic-{number}": PARTITIONS for number in range(TOPICS)}
            )
            self.plane.kubectl("create", "serviceaccount", "spark")
            self.plane.create_user(USER, ["system:masters"])
            ports = stack.enter_context(contextlib.closing(PortPool()))
            self._metrics_port = ports.take()
            settings = {"STUCK_AFTER_SECONDS": "31536000", "METRICS_PORT": str(self._metrics_port)}
            self.operator = OperatorProcess(
                self.plane, user=USER, settings=settings, start_timeout=120
            )
            stack.callback(self.operator.stop)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def api(self) -> Api:
        """A client with all rights."""
        return Api(
            self.plane.server, ca_file=str(self.plane.ca_file), token=self.plane.token(ADMIN)
        )

    async def grow(self, api: Api, *, before: int, after: int) -> None:
        """Create further sources."""
        path = BALANCED_SOURCE.path(NAMESPACE)
        bodies = [self._manifest(number) for number in range(before, after)]
        await api.many(("POST", path, body, "application/json") for body in bodies)

    def start_operator(self) -> float:
        """Start the operator, or start it again after a kill.

        Returns the time at which it was started, monotonic.
        """
        if self.operator.is_running:
            self.operator.kill()
        begin = time.monotonic()
        self.operator.start()
        return begin

    def served(self) -> int:
        """Return the sources with an assignment for which the running operator ended a turn."""
        url = f"http://127.0.0.1:{self._metrics_port}/metrics?name[]=balanced_source_epoch"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                text = answer.read().decode()
        except OSError:
            return 0
        values = (
            line.rsplit(" ", 1)[1]
            for line in text.splitlines()
            if line.startswith("balanced_source_epoch{")
        )
        return sum(float(value) >= 1 for value in values)

    def look(self) -> Look:
        """Look at the operator's process, and at what it has asked the API server for."""
        process = psutil.Process(self.operator.pid)
        with process.oneshot():
            times = process.cpu_times()
            return Look(
                at=time.monotonic(),
                cpu=times.user + times.system,
                mib=process.memory_info().rss / _MIB,
                threads=process.num_threads(),
                connections=len(process.net_connections("tcp")),
                requests=self._requests(),
            )

    def _requests(self) -> Counter[str]:
        """Requests by verb and resource.

        A watch that is opened counts once, like any other request.
        """
        counts: Counter[str] = Counter()
        with self._audit.open() as lines:
            for line in lines:
                if line.endswith("\n"):
                    counts[_word(json.loads(line))] += 1
        return counts

    def _start_audit(self) -> None:
        """The API server writes down each request of the operator.

        The only count that does not trust it.
        """
        rules = [
            {
                "level": "Metadata",
                "users": [USER],
                "omitStages": ["ResponseStarted", "ResponseComplete", "Panic"],
            },
            {"level": "None"},
        ]
        policy = self._folder / "audit-policy.json"
        policy.write_text(
            json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules})
        )
        self._audit.touch()
        self.plane.kill_apiserver()
        self.plane.start_apiserver(
            f"--audit-policy-file={policy}", f"--audit-log-path={self._audit}"
        )
        wait_until(self.plane.ready, 60, "the API server")

    def _manifest(self, number: int) -> dict[str, Any]:
        kafka = {
            "clusters": [{"name": "main", "bootstrapServers": self.kafka.bootstrap}],
            "subscription": {"topics": [f"topic-{number % TOPICS}"]},
            "startingOffsets": {"type": "Earliest"},
        }
        return {
            "apiVersion": BALANCED_SOURCE.api_version,
            "kind": BALANCED_SOURCE.kind,
            "metadata": {"name": name_of(number), "namespace": NAMESPACE},
            "spec": spec_json(source={"kafka": kafka}, parallelism=FIRST_READERS, **self._of_spec),
        }


def name_of(number: int) -> str:
    """Return the name of a source."""
    return f"source-{number:04}"


def between(first: Look, last: Look) -> Sequence[tuple[str, float]]:
    """Return requests per second by verb and resource, the most frequent first."""
    counts = last.requests - first.requests
    return [(word, count / (last.at - first.at)) for word, count in counts.most_common()]


def _word(event: dict[str, Any]) -> str:
    what = event.get("objectRef", {})
    parts = [what.get("resource", event["requestURI"].split("?")[0]), what.get("subresource", "")]
    return f"{event['verb']} {'/'.join(part for part in parts if part)}"
