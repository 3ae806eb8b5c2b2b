"""Schedules over Parquet files with the history of a topic, then the topic, in one query.

What was produced is the truth; see `checker.keyed`.
"""

import csv
import json
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Producer

from chaos.checker import keyed
from chaos.light.brokers import Brokers
from chaos.light.run import Outcome, Tell
from chaos.light.stage import Stage
from chaos.light.written import Writer, Written, drawn, run_written
from chaos.light.zygote import Zygote
from chaos.world import Fault, World
from support.builders import spec_json

SCHEMA: Final[Mapping[str, str]] = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
}
COLUMNS: Final = tuple(SCHEMA)

HISTORY: Final = 600
"""Records of each partition that the files have."""

_FILES: Final = 6
"""Files of each partition."""

_FLUSH: Final = 120.0


class TopicWriter(Writer):
    """Produces numbered records to each partition of a topic.

    Args:
        bootstrap: of the brokers.
        name: of the topic.
        partitions: of the topic.
        folder: of the schedule; the files are in ``in``.
        seed: decides how many at a time.
    """

    def __init__(self, bootstrap: str, name: str, partitions: int, folder: Path, seed: int) -> None:
        super().__init__(f"hybrid-{seed}")
        self._name, self._folder, self._partitions = name, folder, partitions
        self._end, self._first = 0, int(time.time() * 1000) - 3_600_000
        settings = {"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True}
        self._producer: Any = Producer(settings)

    @property
    def total(self) -> int:
        """Number of records."""
        return self._partitions * self._end

    def begin(self) -> None:
        """Produce the history, write it as files, and produce some more."""
        self._produce(HISTORY)
        (self._folder / "in").mkdir(parents=True)
        size = HISTORY // _FILES
        for partition in range(self._partitions):
            for first in range(0, HISTORY, size):
                self._archive(partition, range(first, first + size))
        (self._folder / "history.json").write_text(json.dumps(HISTORY))
        self._produce(50)

    def write_some(self) -> None:
        """Produce a few more."""
        self._produce(self.dice.choice((1, 5, 50)))

    def note(self) -> None:
        """Say which records there are."""
        with (self._folder / "written.csv").open("w", newline="") as out:
            numbers = ((p, n) for p in range(self._partitions) for n in range(self._end))
            csv.writer(out).writerows((f"p{p}", n) for p, n in numbers)

    def _produce(self, count: int) -> None:
        """Produce the next records of each partition.

        Raises:
            RuntimeError: the brokers did not take them.
        """
        for number in range(self._end, self._end + count):
            for partition in range(self._partitions):
                self._producer.produce(
                    self._name,
                    key=b"p%d" % partition,
                    value=b"%d" % number,
                    partition=partition,
                    timestamp=self._first + number,
                )
        if self._producer.flush(_FLUSH):
            raise RuntimeError(f"{self._name}: the brokers did not take all records")
        self._end += count

    def _archive(self, partition: int, numbers: range) -> None:
        times = [self._first + number for number in numbers]
        columns = {
            "key": pa.array([b"p%d" % partition] * len(numbers)),
            "value": pa.array([b"%d" % number for number in numbers]),
            "topic": pa.array([self._name] * len(numbers)),
            "partition": pa.array([partition] * len(numbers), pa.int32()),
            "offset": pa.array(numbers, pa.int64()),
            "timestamp": pa.array(times, pa.timestamp("ms", tz="UTC")),
        }
        file = self._folder / "in" / f"{partition}-{numbers.start:05}.parquet"
        pq.write_table(pa.table(columns), file, row_group_size=20)


def run_hybrid(
    seed: int,
    folder: Path,
    brokers: Brokers,
    *,
    zygote: Zygote,
    tell: Tell,
    faults: tuple[Fault, ...] | None = None,
) -> Outcome:
    """Run a schedule and check it.

    Args:
        seed: decides everything.
        folder: gets everything.
        brokers: that it may use.
        zygote: starts processes.
        tell: gets a line per fault.
        faults: instead of those that follow from the seed.
    """
    dice = random.Random(f"hybrid-world-{seed}")
    name, partitions = f"hybrid{seed}", dice.randint(1, 4)
    world = World(
        seed=seed,
        topics={"main": {name: partitions}},
        is_embedded=dice.random() < 0.3,
        parallelism=dice.randint(1, 4),
        drop_share=dice.choice((0.0, 0.05, 0.2)),
    )
    bootstrap = brokers["main"].bootstrap
    with brokers.steady("main"):
        brokers["main"].admin.create_topics({name: partitions})
    source = Written(
        stage=hybrid_stage(world, folder, bootstrap, zygote),
        writer=TopicWriter(bootstrap, name, partitions, folder, seed),
        delivered=lambda sink: len(keyed.delivered(sink)),
        checker="keyed",
        brokers=brokers,
    )
    more = ("kill_broker", "freeze_broker", "disturb_network")
    return run_written(source, drawn(dice, *more) if faults is None else faults, tell)


def hybrid_stage(world: World, folder: Path, bootstrap: str, zygote: Zygote) -> Stage:
    """Return the stage of a source that reads ``in`` in a folder, and then a topic."""
    place, (topic,) = str(folder / "in"), world.topics["main"]
    schema = ", ".join(f"{name} {kind}" for name, kind in SCHEMA.items())
    files = {"paths": [place], "format": "Parquet", "schema": schema, "splitBytes": 65536}
    kafka = {
        "clusters": [{"name": "main", "bootstrapServers": bootstrap}],
        "subscription": {"topics": [topic]},
        "discovery": {"interval": "1s"},
    }
    columns = ",".join(COLUMNS)
    parts = [
        {
            "connector": "files",
            "path": place,
            "fileFormat": "parquet",
            "schema": schema,
            "metadataColumns": False,
            "splitBytes": 2000,
        },
        {
            "connector": "kafka",
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": topic,
            "columns": columns,
            "startAfter": {"offsets": {}},
        },
    ]
    embedded = {
        "parts": json.dumps(parts),
        "stateDir": str(folder / "state"),
        "parallelism": str(world.parallelism),
    }
    # What the operator passes to its drivers beside the assignment.
    reading = [
        {
            "connector": "files",
            "fileFormat": "parquet",
            "schema": schema,
            "metadataColumns": "false",
        },
        {"connector": "kafka"},
    ]
    local = {
        "parts": json.dumps(reading),
        "assignmentDir": str(folder / "documents"),
        "columns": columns,
    }
    spec = spec_json(
        parallelism=world.parallelism,
        source={"hybrid": [{"files": files}, {"kafka": kafka, "startAfter": {"offsets": {}}}]},
    )
    return Stage(
        world,
        folder,
        zygote,
        spec=dict(spec),
        options={"connector": "hybrid"} | (embedded if world.is_embedded else local),
        schema=SCHEMA,
    )
