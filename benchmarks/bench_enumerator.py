"""What a source of many splits costs the operator: time, memory, bytes.

No broker, no API server: one core, real code.

    python -m benchmarks.bench_enumerator [--splits 1000,10000,…] [--readers 64] [--repeats 3]

One JSON object per line on stdout, a table on stderr. Seconds are processor time of this process,
so that neighbours on the machine count less; the best and the worst of all repeats are given beside
the median.
"""

import argparse
import gc
import json
import random
import string
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from balanced_source.api import SplitId
from balanced_source.assigners import STRATEGIES
from balanced_source.connectors.discovery import Discovered
from balanced_source.connectors.kafka import (
    DiscoverKafka,
    InitializeKafka,
    KafkaCluster,
    KafkaPartitionSplit,
    KafkaSource,
    TopicPattern,
)
from balanced_source.coordinator import (
    CallCompleted,
    Effect,
    ExecuteCall,
    ParallelismChanged,
    ReportReceived,
    SourceCoordinator,
    state_codec,
)
from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import increments
from balanced_source.documents import report as report_document
from balanced_source.documents.report import HostReport
from balanced_source.documents.storage import compress
from benchmarks.statistics_of import spread

UID = "0b9c6f0e-7d0e-4c7e-9b57-3a6d3f1f2a10"
CLUSTERS = ("prod-eu-west-1", "prod-eu-central-1", "prod-us-east-1")
DOMAINS = (
    "payments",
    "orders",
    "inventory",
    "customer",
    "shipping",
    "pricing",
    "fraud",
    "catalog",
    "search",
    "billing",
)
THINGS = (
    "order",
    "invoice",
    "refund",
    "cart",
    "parcel",
    "stock-level",
    "price",
    "session",
    "profile",
    "alert",
    "quote",
)
EVENTS = (
    "created",
    "updated",
    "cancelled",
    "completed",
    "rejected",
    "enriched",
    "snapshot",
    "dead-letter",
    "changelog",
)


def split_ids(count: int) -> list[SplitId]:
    """Partitions of topics with names as they are found in the field.

    6 to 96 partitions per topic.
    """
    rng = random.Random(7)
    found: list[SplitId] = []
    number = 0
    while len(found) < count:
        cluster = rng.choice(CLUSTERS)
        kind = f"{rng.choice(DOMAINS)}.{rng.choice(THINGS)}.{rng.choice(EVENTS)}"
        topic = f"{kind}.v{rng.randint(1, 4)}-{number:05d}"
        number += 1
        found += [(cluster, topic, p) for p in range(rng.choice((6, 12, 24, 48, 96)))]
    return found[:count]


@dataclass
class World:
    """A coordinator with its splits, and what it asked for."""

    ids: list[SplitId]
    strategy: str
    readers: int
    calls: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        clusters = tuple(KafkaCluster(name=c, bootstrap_servers="broker:9092") for c in CLUSTERS)
        self.source = KafkaSource(
            clusters=clusters, subscriber=TopicPattern(".*"), assigner=STRATEGIES[self.strategy]()
        )
        rng = random.Random(11)
        self.offsets = {s: int(rng.lognormvariate(16, 3)) for s in self.ids}
        self.topics = {
            s[:2]: "".join(rng.choices(string.ascii_letters + string.digits, k=22))
            for s in self.ids
        }
        self.coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(
            self.source, parallelism=self.readers
        )

    def note(self, effects: list[Effect]) -> None:
        """Remember the calls that are due."""
        due = [
            effect for effect in effects if isinstance(effect, ExecuteCall) and effect.delay == 0
        ]
        self.calls |= {effect.call_id: effect.call for effect in due}

    def discover(self, known: list[SplitId]) -> None:
        """All clusters answer, positions are resolved, and everything has an owner."""
        by_cluster = {c: frozenset(s for s in known if s[0] == c) for c in CLUSTERS}
        while self.calls:
            call_id, call = self.calls.popitem()
            if isinstance(call, DiscoverKafka):
                found = by_cluster[call.scope]
                result: Any = Discovered(
                    split_ids=found, identities={s: self.topics.get(s[:2], "new") for s in found}
                )
            elif isinstance(call, InitializeKafka):
                result = [self._split(s) for s in call.split_ids]
            else:
                continue
            self.note(self.coordinator.handle(CallCompleted(call_id, result), now=0.0))

    def start(self) -> None:
        """The first assignment."""
        self.note(self.coordinator.start(now=0.0))
        self.discover(self.ids)

    def acknowledge(self) -> None:
        """The readers register, and adopt what they were assigned."""
        report = HostReport(incarnation=1, sequence=1)
        self.coordinator.handle(ReportReceived(report), now=0.0)
        state = self.coordinator.state
        positions = {s: offset + 1000 for s, offset in self.offsets.items() if s in state.owners}
        held = replace(
            report,
            sequence=2,
            epoch=state.epoch,
            parallelism=state.parallelism,
            owners=dict(state.owners),
            positions=positions,
            heartbeat=100.0,
        )
        self.coordinator.handle(ReportReceived(held), now=0.0)
        read = {
            s: p + round(100 * rate)
            for (s, p), rate in zip(positions.items(), self._rates(), strict=False)
        }
        later = replace(held, sequence=3, positions=read, heartbeat=200.0)
        self.coordinator.handle(ReportReceived(later), now=0.0)

    def _rates(self) -> list[float]:
        """Records per second, with a long tail (zipf 1.1)."""
        rates = [1e6 / rank**1.1 for rank in range(1, len(self.ids) + 1)]
        random.Random(13).shuffle(rates)
        return rates

    def fork(self) -> "World":
        """A world that goes its own way."""
        copy = World.__new__(World)
        copy.__dict__ = {**self.__dict__, "coordinator": self.coordinator.fork(), "calls": {}}
        return copy

    def rescale(self, readers: int) -> None:
        """Another number of readers."""
        self.coordinator.handle(ParallelismChanged(readers), now=0.0)

    def grow(self) -> None:
        """A discovery that finds one percent more partitions."""
        more = [
            ("prod-us-east-1", "payments.refund.created.v9", p)
            for p in range(max(1, len(self.ids) // 100))
        ]
        self.offsets = {**self.offsets, **dict.fromkeys(more, 0)}
        enumerator = self.coordinator.enumerator
        for scope in CLUSTERS:
            enumerator._ask(scope, delay=0.0)  # noqa: SLF001 - a timer would
        self.note(self.coordinator._settle())  # noqa: SLF001
        self.discover([*self.ids, *more])

    def _split(self, split_id: SplitId) -> KafkaPartitionSplit:
        cluster, topic, partition = split_id
        return KafkaPartitionSplit(
            cluster=str(cluster),
            topic=str(topic),
            partition=int(partition),
            offset=self.offsets[split_id],
            topic_id=self.topics.get((cluster, topic)),
        )


def timed(act: Callable[[], object]) -> float:
    """Processor seconds."""
    gc.collect()
    begin = time.process_time()
    act()
    return time.process_time() - begin


def peak(act: Callable[[], object]) -> float:
    """MiB that were allocated at once, at most, beyond what was there before."""
    gc.collect()
    tracemalloc.start()
    act()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One size."""

    splits: int
    readers: int
    strategy: str
    repeats: int
    only: str = ""

    def rows(self) -> Iterator[dict[str, Any]]:
        """All measurements."""
        ids = split_ids(self.splits)
        if not self.only:
            yield self._row(
                "first assignment", lambda: World(ids, self.strategy, self.readers), World.start
            )
        world = World(ids, self.strategy, self.readers)
        world.start()
        first = world.coordinator.assignment
        world.acknowledge()
        for name, act in self._changes():
            if name.startswith(self.only):
                yield self._row(name, world.fork, act)
        if self.only:
            return
        yield from self._documents(world)
        yield from self._publications(world, first)

    def _changes(self) -> list[tuple[str, Callable[[World], None]]]:
        p = self.readers
        return [
            (f"rescale {p} → {p + 1}", lambda world: world.rescale(p + 1)),
            (f"rescale {p} → {p - 1}", lambda world: world.rescale(p - 1)),
            (f"rescale {p} → {2 * p}", lambda world: world.rescale(2 * p)),
            ("discovery with 1 % more", World.grow),
        ]

    def _row(
        self, name: str, prepare: Callable[[], World], act: Callable[[World], None]
    ) -> dict[str, Any]:
        seconds = []
        for _ in range(self.repeats):
            world = prepare()
            seconds.append(timed(lambda world=world: act(world)))  # type: ignore[misc]
        world = prepare()
        return {**self._head(name, seconds), "peak_mib": round(peak(lambda: act(world)), 1)}

    def _documents(self, world: World) -> Iterator[dict[str, Any]]:
        source, checkpoint = world.source, world.coordinator.checkpoint()
        state = state_codec.encode(checkpoint, source, uid=UID)
        whole = assignment_document.encode(world.coordinator.assignment, source=UID)
        for name, document, act in (
            ("encode state", state, lambda: state_codec.encode(checkpoint, source, uid=UID)),
            ("decode state", state, lambda: state_codec.decode(state, source, uid=UID)),
            (
                "encode assignment",
                whole,
                lambda: assignment_document.encode(world.coordinator.assignment, source=UID),
            ),
            ("decode assignment", whole, lambda: assignment_document.decode(whole, source=UID)),
        ):
            yield {
                **self._head(name, [timed(act) for _ in range(self.repeats)]),
                **self._sizes(document),
            }

    def _publications(self, world: World, first: Any) -> Iterator[dict[str, Any]]:
        """What a rescale writes, beside the whole assignment and everything that is stored."""
        _, first_base = increments.encode(first, source=UID, base=None)
        text, base = increments.encode(world.coordinator.assignment, source=UID, base=first_base)
        state = len(
            compress(state_codec.encode(world.coordinator.checkpoint(), world.source, uid=UID))
        )
        for name, of in (("stored at first", first_base), ("stored once adopted", base)):
            stored = len(compress(of.text if of is not None else "")) + len(compress(text)) + state
            yield {**self._head(name, []), "packed_bytes": stored, **self._per_split(stored)}
        told = world.coordinator.state.hosts["0"].report
        if told is not None:
            report = replace(told, attributes=world.coordinator.assignment.attributes)
            yield {
                **self._head("stored by the driver", []),
                **self._sizes(report_document.encode(report, source=UID)),
            }
        for readers in (self.readers + 1, self.readers - 1, 2 * self.readers):
            fork = world.fork()
            fork.rescale(readers)
            after = fork.coordinator.assignment
            encode = partial(increments.encode, after, source=UID, base=base)
            seconds = [timed(encode) for _ in range(self.repeats)]
            text, fresh = encode()
            written = len(compress(text)) + (
                0 if fresh is None or fresh is base else len(compress(fresh.text))
            )
            whole = len(compress(assignment_document.encode(after, source=UID)))
            row = self._head(f"publish rescale {self.readers} → {readers}", seconds)
            yield {
                **row,
                "packed_bytes": written,
                "whole_packed_bytes": whole,
                **self._per_split(written),
            }

    def _sizes(self, document: str) -> dict[str, Any]:
        packed = len(compress(document))
        return {"bytes": len(document.encode()), "packed_bytes": packed, **self._per_split(packed)}

    def _per_split(self, size: int) -> dict[str, Any]:
        return {"packed_bytes_per_split": round(size / self.splits, 2)}

    def _head(self, name: str, seconds: list[float]) -> dict[str, Any]:
        head: dict[str, Any] = {"splits": self.splits, "strategy": self.strategy, "operation": name}
        if seconds:
            head["seconds"] = spread(seconds, 4)
        return head


def print_row(row: dict[str, Any]) -> None:
    """JSON for programs, a line for people."""
    print(json.dumps(row), flush=True)
    seconds = row.get("seconds")
    took = (
        f"{seconds['median']:9.3f} s [{seconds['min']:.3f} … {seconds['max']:.3f}]"
        if seconds
        else " " * 11
    )
    more = [f"{row['peak_mib']:.0f} MiB"] if "peak_mib" in row else []
    if "packed_bytes" in row:
        more.append(
            f"{row['packed_bytes'] / 1024:.1f} KiB packed, {row['packed_bytes_per_split']} per"
            " split"
        )
    if "whole_packed_bytes" in row:
        more.append(f"whole: {row['whole_packed_bytes'] / 1024:.1f} KiB")
    line = (
        f"{row['splits']:>9} {row['strategy']:<11} {row['operation']:<28} {took}  {', '.join(more)}"
    )
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", default="1000,10000,100000,1000000")
    parser.add_argument("--readers", type=int, default=64)
    parser.add_argument("--strategies", default="RoundRobin,LoadAware")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--only", default="", help="only changes whose names begin so: rescale, discovery"
    )
    arguments = parser.parse_args()
    for count in map(int, arguments.splits.split(",")):
        for strategy in arguments.strategies.split(","):
            bench = Bench(
                splits=count,
                readers=arguments.readers,
                strategy=strategy,
                repeats=arguments.repeats,
                only=arguments.only,
            )
            for row in bench.rows():
                print_row(row)


if __name__ == "__main__":
    main()
