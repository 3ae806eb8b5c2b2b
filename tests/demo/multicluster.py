"""Upstream's example of global balance, live.

Four real brokers, one Spark query, clusters that come and go.

    make demo-multicluster

Seven readers; a topic of four partitions on each cluster. local-3 is added, local-2 removed, then
added again, then five readers are left. After each step the owners are shown, before and after,
beside those of the per-cluster mode that a second coordinator keeps for the same clusters. One
query reads all the time; in the end every record must have arrived exactly once.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import structlog
import yaml
from pyspark.sql.streaming.query import StreamingQuery

from balanced_source.coordinator import CoordinatorState
from balanced_source_operator.local import LocalOperator
from support.builders import spec_json
from support.owner_table import imbalance, rows
from support.queries import Collector, start, wait_rows
from support.spark_session import spark_session
from testbed.kafka import KafkaCluster
from testbed.processes import Supervisor
from testbed.waiting import wait_until

TOPIC: Final = "example-topic"
PARTITIONS: Final = 4
CLUSTERS: Final = 4
RECORDS: Final = 100
"""Records per partition and step."""

Step = tuple[str, int, tuple[int, ...]]
STORY: Final[Sequence[Step]] = (
    ("three clusters", 7, (0, 1, 2)),
    ("add local-3", 7, (0, 1, 2, 3)),
    ("remove local-2", 7, (0, 1, 3)),
    ("add local-2 again", 7, (0, 1, 2, 3)),
    ("rescale to 5 readers", 5, (0, 1, 2, 3)),
)


class Mode:
    """A coordinator in one enumerator mode, driven by the same spec file as a user would edit."""

    def __init__(self, name: str, folder: Path, brokers: Sequence[KafkaCluster]) -> None:
        self.name = name
        self.documents = folder / "documents"
        self._file = folder / "source.yaml"
        self._brokers = brokers
        folder.mkdir()
        self._write(STORY[0])
        self.operator = LocalOperator(self._file, self.documents)
        self.operator.start()

    @property
    def state(self) -> CoordinatorState[Any]:
        return self.operator.coordinator.state

    def apply(self, step: Step) -> None:
        """Edit the spec, and wait until everything has an owner."""
        _, parallelism, numbers = step
        self._write(step)
        wanted = {(f"local-{n}", TOPIC, p) for n in numbers for p in range(PARTITIONS)}

        def is_decided() -> bool:
            self.operator.look()
            return self.state.parallelism == parallelism and self.state.owners.keys() == wanted

        wait_until(is_decided, 60, f"{self.name}: every split to have an owner")

    def _write(self, step: Step) -> None:
        _, parallelism, numbers = step
        kafka = {
            "clusters": [
                {"name": f"local-{n}", "bootstrapServers": broker.bootstrap, "active": n in numbers}
                for n, broker in enumerate(self._brokers)
            ],
            "subscription": {"topics": [TOPIC]},
            "enumeratorMode": self.name,
        }
        spec = spec_json(parallelism=parallelism, source={"kafka": kafka})
        if self.name == "PerCluster":
            spec["assignment"] = {"strategy": "Hash"}  # Flink's owner function
        temporary = self._file.with_suffix(".new")
        temporary.write_text(yaml.safe_dump({"spec": spec}))
        temporary.replace(self._file)


def main() -> None:
    """Play the story; exit code 1 if a record is missing or came twice."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    with tempfile.TemporaryDirectory(prefix="multicluster-") as name, ExitStack() as stack:
        folder = Path(name)
        _say("starting four brokers and Spark …")
        brokers = stack.enter_context(_brokers(folder))
        ours, theirs = (Mode(mode, folder / mode, brokers) for mode in ("Global", "PerCluster"))
        spark = stack.enter_context(spark_session())
        sink = Collector()
        query = start(spark, sink, folder / "checkpoint", assignmentDir=str(ours.documents))
        run, expected = query.runId, 0
        for step in STORY:
            expected += _produce(brokers, step)
            _play(step, ours, theirs, query)
            wait_until(
                lambda: ours.operator.look() or _is_adopted(ours),
                60,
                "the query to adopt the assignment",
            )
            wait_rows(query, sink, expected)
        is_same_run = query.runId == run
        query.stop()
        _prove(sink, expected, is_same_run=is_same_run)


def _play(step: Step, ours: Mode, theirs: Mode, query: StreamingQuery) -> None:
    befores = {
        mode.name: (dict(mode.state.owners), mode.state.parallelism) for mode in (ours, theirs)
    }
    _say(f"\n── {step[0]} " + "─" * (72 - len(step[0])))
    for mode in (ours, theirs):
        mode.apply(step)
        owners, parallelism = befores[mode.name]
        moved = sum(
            mode.state.owners[s] != owner for s, owner in owners.items() if s in mode.state.owners
        )
        _table(f"{mode.name}, before", owners, parallelism)
        _table(f"{mode.name}, after", mode.state.owners, mode.state.parallelism, moved=moved)
    assert query.exception() is None, str(query.exception())


def _table(title: str, owners: Any, parallelism: int, *, moved: int | None = None) -> None:
    cells = [f"r{reader} {text or '–'}" for reader, text in enumerate(rows(owners, parallelism))]
    told = f"   moved {moved}" if moved is not None else ""
    _say(f"{title:<20} max − min = {imbalance(owners, parallelism)}{told}")
    _say("    " + " │ ".join(cells))


def _is_adopted(mode: Mode) -> bool:
    return mode.state.hosts["0"].acknowledged_epoch == mode.state.epoch


def _produce(brokers: Sequence[KafkaCluster], step: Step) -> int:
    """Records for the clusters of the step; those of a removed one are read when it returns."""
    for number in step[2]:
        for partition in range(PARTITIONS):
            brokers[number].admin.produce(TOPIC, [b"x"] * RECORDS, partition=partition)
    return len(step[2]) * PARTITIONS * RECORDS


def _prove(sink: Collector, expected: int, *, is_same_run: bool) -> None:
    got = Counter((row.cluster, row.partition, row.offset) for row in sink.rows)
    twice = sum(count - 1 for count in got.values())
    _say(
        f"\nrecords produced {expected}, read {len(got)}, read twice {twice},"
        f" query restarts {0 if is_same_run else 1}"
    )
    if len(got) != expected or twice or not is_same_run:
        sys.exit(1)


@contextmanager
def _brokers(folder: Path) -> Iterator[Sequence[KafkaCluster]]:
    supervisor = Supervisor(folder)
    with ExitStack() as stack:
        made = [
            stack.enter_context(
                KafkaCluster(f"local-{n}", folder, heap="256m", supervisor=supervisor)
            )
            for n in range(CLUSTERS)
        ]
        for broker in made:
            broker.admin.create_topic(TOPIC, partitions=PARTITIONS)
        yield made


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
