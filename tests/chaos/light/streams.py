"""Schedules over a Kinesis stream: shards are split and merged, and processes die.

What was written is the truth; see `checker.keyed`. No record expires during a schedule.
"""

import csv
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from chaos.checker import keyed
from chaos.light.faults import Act, Scene
from chaos.light.run import Outcome, Tell
from chaos.light.stage import Stage
from chaos.light.written import Writer, Written, drawn, run_written
from chaos.light.zygote import Zygote
from chaos.world import Fault, World
from support.builders import spec_json
from support.kinesis import KEYS, Stream, kinesis_client
from testbed.kinesis import ENVIRONMENT

SCHEMA: Final[Mapping[str, str]] = {
    "data": "binary",
    "partitionKey": "string",
    "sequenceNumber": "string",
    "shardId": "string",
    "stream": "string",
    "approximateArrivalTimestamp": "timestamp",
}

SHARDS: Final = 6
"""Open shards, at most."""


class StreamWriter(Writer):
    """Puts numbered records.

    Args:
        stream: that gets them.
        folder: of the schedule.
        seed: decides how many at a time.
    """

    def __init__(self, stream: Stream, folder: Path, seed: int) -> None:
        super().__init__(f"stream-{seed}")
        self._stream, self._file = stream, folder / "written.csv"

    @property
    def total(self) -> int:
        """Number of records."""
        return self._stream.sent

    def begin(self) -> None:
        """Put the first records."""
        self._stream.put(200)

    def write_some(self) -> None:
        """Put a few more."""
        self._stream.put(self.dice.choice((1, 20, 20, 200)))

    def note(self) -> None:
        """Say which records there are."""
        with self._file.open("w", newline="") as out:
            csv.writer(out).writerows((KEYS[n % len(KEYS)], n) for n in range(self.total))


def shard_acts(stream: Stream) -> Mapping[str, Act]:
    """Return the faults of a stream, by their names."""

    def split_shard(_: Scene, dice: random.Random) -> None:
        """A shard is split."""
        if len(shards := stream.open_shards()) < SHARDS:
            stream.split(dice.choice(shards))

    def split_twice(scene: Scene, dice: random.Random) -> None:
        """A shard is split, and a child of it at once, whoever reads meanwhile."""
        for _ in range(2):
            split_shard(scene, dice)

    def merge_shards(_: Scene, dice: random.Random) -> None:
        """Two neighbours are merged."""
        if len(shards := stream.open_shards()) > 1:
            first = dice.randrange(len(shards) - 1)
            stream.merge(*shards[first : first + 2])

    def recount_shards(_: Scene, dice: random.Random) -> None:
        """`UpdateShardCount` replaces all shards."""
        now = len(stream.open_shards())
        # The service takes at most twice as many, and not fewer than half.
        stream.rescale(dice.randint(-(-now // 2), min(2 * now, SHARDS)))

    return {act.__name__: act for act in (split_shard, split_twice, merge_shards, recount_shards)}


def run_stream(
    seed: int,
    folder: Path,
    endpoint: str,
    *,
    zygote: Zygote,
    tell: Tell,
    faults: tuple[Fault, ...] | None = None,
) -> Outcome:
    """Run a schedule and check it.

    Args:
        seed: decides everything.
        folder: gets everything.
        endpoint: of the Kinesis server.
        zygote: starts processes, with credentials in their environment.
        tell: gets a line per fault.
        faults: instead of those that follow from the seed.
    """
    dice = random.Random(f"stream-world-{seed}")
    world = World(
        seed=seed,
        topics={},
        is_embedded=dice.random() < 0.3,
        max_records_per_reader=dice.choice((None, None, 50)),
        parallelism=dice.randint(1, 4),
        drop_share=dice.choice((0.0, 0.05, 0.2)),
    )
    stream = Stream(kinesis_client(endpoint), shards=dice.randint(1, 3))
    acts = shard_acts(stream)
    source = Written(
        stage=stream_stage(world, folder, endpoint, stream.name, zygote),
        writer=StreamWriter(stream, folder, seed),
        delivered=lambda sink: len(keyed.delivered(sink)),
        checker="keyed",
        acts=acts,
    )
    try:
        return run_written(source, drawn(dice, *acts, pause=3) if faults is None else faults, tell)
    finally:
        # The account of the server has so many shards for all schedules.
        stream.delete()


def stream_stage(world: World, folder: Path, endpoint: str, stream: str, zygote: Zygote) -> Stage:
    """Return the stage of a source that reads a stream; its Secret lies beside the manifest."""
    secret = folder / "kinesis"
    secret.mkdir(parents=True)
    (secret / "accessKeyId").write_text(ENVIRONMENT["AWS_ACCESS_KEY_ID"])
    (secret / "secretAccessKey").write_text(ENVIRONMENT["AWS_SECRET_ACCESS_KEY"])
    shared = {
        "connector": "kinesis",
        "journalLocation": str(folder / "journal"),
        "fetchWait": "300ms",
        "pollInterval": "300ms",
    }
    if world.max_records_per_reader is not None:
        shared["fetchMaxRecords"] = str(world.max_records_per_reader)
    kinesis: dict[str, Any] = {
        "streams": [stream],
        "endpoint": endpoint,
        "region": ENVIRONMENT["AWS_DEFAULT_REGION"],
        "startingPosition": {"type": "TrimHorizon"},
        "discoveryInterval": "1s",
    }
    options = {
        "streams": stream,
        "kinesisEndpoint": endpoint,
        "discoveryInterval": "1s",
        "parallelism": str(world.parallelism),
    }
    local = {"assignmentDir": str(folder / "documents"), "secretsDir": str(folder)}
    return Stage(
        world,
        folder,
        zygote,
        spec=dict(
            spec_json(
                parallelism=world.parallelism, source={"kinesis": kinesis | {"secret": "kinesis"}}
            )
        ),
        options=shared | (options if world.is_embedded else local),
        schema=SCHEMA,
    )
