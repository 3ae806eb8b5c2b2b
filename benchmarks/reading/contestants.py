"""Who reads: our readers, Spark's Kafka source in three settings, our native reader alone."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from testbed.kafka import KafkaCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """A source of Spark with its options.

    Attributes:
        name: in results.
        format: of the source.
        options: beside brokers and topic.
        columns: what the query selects; everything when empty.
    """

    name: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()

    def settings(self, kafka: KafkaCluster, topic: str, *, readers: int) -> dict[str, str]:
        """All options; Spark's own source has no number of readers, it has a task per partition."""
        given = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topic, **self.options}
        return {**given, "parallelism": str(readers)} if self.format == "balanced" else given


OURS: Final = Contestant(
    name="ours", format="balanced", options={"reader": "native", "starttimeoutseconds": "60"}
)
OURS_CUT: Final = Contestant(
    name="ours, cut", format="balanced", options={**OURS.options, "maxrecordsperreader": "1"}
)
PYTHON: Final = Contestant(
    name="ours, pure Python", format="balanced", options={**OURS.options, "reader": "python"}
)
OURS_VALUE: Final = Contestant(
    name="ours, value only",
    format="balanced",
    options={**OURS.options, "columns": "value"},
    columns=("value",),
)


def native(
    name: str, properties: Mapping[str, str], *, columns: tuple[str, ...] = ()
) -> Contestant:
    """Return Spark's own source with these properties of the Java consumer."""
    options = {f"kafka.{key}": value for key, value in properties.items()}
    return Contestant(name=name, format="kafka", options=options, columns=columns)


TEN_MS: Final = {"fetch.max.wait.ms": "10"}
"""The one setting that everybody finds: a fetch does not wait 500 ms for more."""

TUNED: Final = {
    **TEN_MS,
    "max.poll.records": "10000",
    "max.partition.fetch.bytes": str(16 << 20),
    "fetch.max.bytes": str(64 << 20),
    "receive.buffer.bytes": str(1 << 20),
    "check.crcs": "false",  # librdkafka's default too
}
"""The Java consumer as `make bench-tune` left it for Spark's own source."""

SPARK: Final = native("spark", {})
SPARK_10_MS: Final = native("spark, 10 ms", TEN_MS)
SPARK_TUNED: Final = native("spark, tuned", TUNED)
SPARK_TUNED_VALUE: Final = native("spark, tuned, value only", TUNED, columns=("value",))

BARE: Final = "bare loop"


def bare_loop(kafka: KafkaCluster, topic: str, *, readers: int) -> tuple[float, float, int]:
    """Read everything with our native reader, without columns and without Spark.

    There are as many processes as readers. Their clocks start after the imports.

    Returns:
        Wall seconds, CPU seconds, records.
    """
    ends = {p: end for p, (_, end) in kafka.admin.offsets(topic).items()}
    shares = [
        {p: end for p, end in ends.items() if p % readers == number} for number in range(readers)
    ]
    calls = [
        [
            sys.executable,
            "-m",
            "benchmarks.reading.contestants",
            kafka.bootstrap,
            topic,
            json.dumps(share),
        ]
        for share in shares
        if share
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    running = [
        subprocess.Popen(call, stdout=subprocess.PIPE, text=True, env=environment)  # noqa: S603 - this file
        for call in calls
    ]
    told = [json.loads(process.communicate()[0]) for process in running]
    return max(t["wall"] for t in told), sum(t["cpu"] for t in told), sum(t["rows"] for t in told)


def _count(bootstrap: str, topic: str, ends: Mapping[str, int]) -> dict[str, float]:
    # Built by `make native`
    import balanced_source_native as native  # type: ignore[import-not-found]

    from balanced_source_spark.kafka.settings import DEFAULTS, FORCED

    config = {"bootstrap.servers": bootstrap, **DEFAULTS, **FORCED}
    text = {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in config.items()
    }
    reader = native.RangeReader(
        text, cluster="", columns=[], max_rows=1 << 20, max_bytes=1 << 30, stall=60.0
    )
    began, cpu, rows = time.monotonic(), time.process_time(), 0
    reader.begin([(topic, int(p), 0, end, None) for p, end in ends.items()])
    while (batch := reader.next_batch()) is not None:
        rows += len(batch)
    return {"wall": time.monotonic() - began, "cpu": time.process_time() - cpu, "rows": rows}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_count(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))))
