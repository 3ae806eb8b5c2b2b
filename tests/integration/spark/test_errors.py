"""Every mistake of a user is reported where they look.

In the first line of the exception, for each kind of query.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from support.queries import Collector, start, wait_rows
from testbed.kafka import KafkaCluster, Listener
from testbed.waiting import wait_until

pytestmark = pytest.mark.integration

PATIENCE = 14
"""Seconds, a little more than a client needs to find out why no one answers."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A mistake, and what the first line of the exception has to say about it."""

    says: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    listener: Listener | None = None


SASL = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "SCRAM-SHA-512"}

REJECTED: Mapping[str, Case] = {
    "missing topic": Case(
        options={"subscribe": "no-such-topic"},
        says=("topic no-such-topic does not exist", "create it, or correct the subscription"),
    ),
    "missing partition": Case(
        options={"subscribe": "", "assign": '{"no-such-topic":[7]}'},
        says=("partition no-such-topic/7 does not exist", "create it, or correct the subscription"),
    ),
    "TLS without a CA": Case(
        listener=Listener.TLS,
        options={"kafka.security.protocol": "SSL"},
        says=("certificate verify failed", "check security.protocol and the certificates"),
    ),
    "SASL without a password": Case(
        listener=Listener.SASL, options=SASL, says=("sasl.username and sasl.password must be set",)
    ),
    "unknown property of the client": Case(
        options={"kafka.secruity.protocol": "SSL"},
        says=("did you mean security.protocol?", "as options kafka.*"),
    ),
    "invalid value of a property": Case(
        options={"kafka.security.protocol": "TLS"}, says=("security.protocol", "as options kafka.*")
    ),
    "misspelt option": Case(
        options={"paralelism": "2"}, says=("'paralelism' (did you mean parallelism?)",)
    ),
    "invalid value": Case(
        options={"parallelism": "0"}, says=("option parallelism: must be at least 1, not 0",)
    ),
}
"""Waiting does not help: the query ends at once."""

UNREACHABLE: Mapping[str, Case] = {
    "wrong port": Case(
        options={"kafka.bootstrap.servers": "localhost:1"}, says=("does not answer", "refused")
    ),
    "unknown host": Case(
        options={"kafka.bootstrap.servers": "no-such-host.invalid:9092"},
        says=("does not answer", "no-such-host.invalid"),
    ),
    "SASL port without a protocol": Case(
        listener=Listener.SASL, says=("does not answer", "set security.protocol (as an option")
    ),
}
"""Waiting may help: the query ends after `startTimeoutSeconds`."""


@pytest.fixture(scope="module")
def at_once() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=6) as pool:
        yield pool


Kind = Callable[[SparkSession, Mapping[str, str], Path], None]


def batch(spark: SparkSession, options: Mapping[str, str], _: Path) -> None:
    spark.read.format("balanced").options(**options).load().count()


def stream(spark: SparkSession, options: Mapping[str, str], folder: Path) -> None:
    _run(spark, options, folder, {"processingTime": "100 milliseconds"})


def available_now(spark: SparkSession, options: Mapping[str, str], folder: Path) -> None:
    _run(spark, options, folder, {"availableNow": True})


def _run(
    spark: SparkSession, options: Mapping[str, str], folder: Path, trigger: dict[str, object]
) -> None:
    query = start(spark, Collector(), folder, trigger=trigger, **options)
    try:
        query.awaitTermination(120)
    finally:
        query.stop()


KINDS: Mapping[str, Kind] = {"batch": batch, "stream": stream, "AvailableNow": available_now}


def first_line(kind: Kind, spark: SparkSession, options: Mapping[str, str], folder: Path) -> str:
    try:
        kind(spark, options, folder)
    except PySparkException as error:
        return str(error).splitlines()[0]
    return "the query ended without an error"


def options_of(case: Case, kafka: KafkaCluster, topic: str) -> Mapping[str, str]:
    servers = kafka.bootstrap_of(case.listener) if case.listener else kafka.bootstrap
    given = {
        "kafka.bootstrap.servers": servers,
        "subscribe": topic,
        "startTimeoutSeconds": str(PATIENCE),
    }
    return {name: value for name, value in {**given, **case.options}.items() if value}


@pytest.mark.parametrize("name", REJECTED)
def test_a_rejected_setting_ends_every_kind_of_query_at_once(
    spark: SparkSession,
    secured: KafkaCluster,
    at_once: ThreadPoolExecutor,
    tmp_path: Path,
    name: str,
) -> None:
    check(spark, {name: options_of(REJECTED[name], secured, "hers")}, at_once, tmp_path, REJECTED)


def test_unreachable_brokers_end_every_kind_of_query_after_its_patience(
    spark: SparkSession, secured: KafkaCluster, at_once: ThreadPoolExecutor, tmp_path: Path
) -> None:
    asked = {name: options_of(case, secured, "hers") for name, case in UNREACHABLE.items()}
    check(spark, asked, at_once, tmp_path, UNREACHABLE)


def check(
    spark: SparkSession,
    asked: Mapping[str, Mapping[str, str]],
    pool: ThreadPoolExecutor,
    folder: Path,
    cases: Mapping[str, Case],
) -> None:
    """All queries run side by side: most of the time they wait."""
    running = {
        (name, kind): pool.submit(first_line, run, spark, options, folder / f"{name}-{kind}")
        for name, options in asked.items()
        for kind, run in KINDS.items()
    }
    said = {key: future.result() for key, future in running.items()}
    missing = {
        (*key, part): line
        for key, line in said.items()
        for part in cases[key[0]].says
        if part not in line
    }
    assert missing == {}
    assert not [line for line in said.values() if "Traceback" in line or "propertiesFrom" in line]


def test_a_problem_of_a_query_that_reads_is_shown_in_its_progress(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    """One topic is there, and the other one is not."""
    kafka.admin.produce(topic, [b"x"] * 10)
    sink = Collector()
    both = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": f"{topic},no-such-topic"}
    query = start(
        spark,
        sink,
        tmp_path / "ck",
        **both,
        startingOffsets="earliest",
        discoveryIntervalSeconds="1",
    )
    try:
        wait_rows(query, sink, 10)
        wait_until(lambda: problems(query.lastProgress), 60, "a problem in the progress")
        assert problems(query.lastProgress)[0].startswith(
            f"topic no-such-topic does not exist on the cluster at {kafka.bootstrap}"
        )
        kafka.admin.create_topic("no-such-topic")
        kafka.admin.produce("no-such-topic", [b"y"])
        wait_rows(query, sink, 11)
        wait_until(lambda: problems(query.lastProgress) == [], 60, "no problem in the progress")
    finally:
        query.stop()
        kafka.admin.delete_topic("no-such-topic")


def problems(progress: object) -> list[str]:
    shown = getattr(progress, "sources", [])
    newest = json.loads(shown[0].latestOffset) if shown and shown[0].latestOffset else {}
    found: list[str] = newest.get("problems", []) if isinstance(newest, dict) else []
    return found
