"""The examples of the how-to pages under the operator, with real Spark pods.

Only addresses and sizes are replaced.
"""

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest

from support.example_stack import KEY, PARTITIONS, PASSWORD, ExampleStack, example_stack
from support.metrics_server import MetricsServer
from testbed.errors import CommandError
from testbed.kafka import Listener
from testbed.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.e2e, pytest.mark.timeout(1500)]

RECORDS = 60
START = 600
"""Seconds until an application must read; the machine may do other things too."""
APPLICATION = "sparkapplications.sparkoperator.k8s.io"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExampleStack]:
    with example_stack(tmp_path_factory.mktemp("examples")) as started:
        yield started


@pytest.fixture
def stack(whole: ExampleStack) -> Iterator[ExampleStack]:
    """The cluster with more records than before, and without a source at the end."""
    whole.produce(RECORDS)
    yield whole
    whole.delete()


def application(stack: ExampleStack) -> dict[str, Any]:
    """Return the only application; empty while it is being replaced."""
    found = stack.cluster.control_plane.items(APPLICATION)
    assert len(found) < 2
    return found[0] if found else {}


def conf_of(stack: ExampleStack) -> dict[str, str]:
    """Return the Spark settings of the application."""
    return dict(application(stack).get("spec", {}).get("sparkConf", {}))


def uid(stack: ExampleStack) -> str:
    """Return the uid of the application; empty if there is none."""
    return str(application(stack).get("metadata", {}).get("uid", ""))


def test_the_s3_sink_and_its_checkpoint_outlive_the_driver(
    stack: ExampleStack, tmp_path: Path
) -> None:
    kubectl = stack.cluster.control_plane.kubectl
    keys = ("spark.hadoop.fs.s3a.access.key", "spark.hadoop.fs.s3a.secret.key")
    kubectl(
        "create",
        "secret",
        "generic",
        "bucket-credentials",
        *(f"--from-literal={key}={KEY}" for key in keys),
    )
    copies = tmp_path / "orders"
    copies.mkdir()

    stack.apply(stack.objects("sink-s3"))
    stack.source.wait_adopted(parallelism=2, splits=PARTITIONS, timeout=START)
    wait_until(
        lambda: stack.delivery(copies).delivered >= stack.produced,
        180,
        "the first records",
        interval=1,
    )
    incarnation = stack.source.report.incarnation
    stack.cluster.kill_pod_process(stack.driver)
    stack.produce(RECORDS)
    wait_until(
        lambda: stack.source.report.incarnation > incarnation,
        START,
        "a second driver",
        interval=0.5,
    )
    wait_until(
        lambda: stack.delivery(copies).delivered >= stack.produced,
        180,
        "the other records",
        interval=1,
    )

    assert stack.delivery(copies).is_exact, stack.delivery(copies).examples
    assert not [key for key in keys if key in conf_of(stack)], "credentials in the SparkApplication"


def test_a_program_of_its_own_writes_each_record_once(stack: ExampleStack) -> None:
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "orders-data"},
        "spec": claim,
    }
    stack.apply([volume, *stack.objects("own-program")])
    folder = stack.cluster.node.folder / "claims" / "default" / "orders-data" / "orders"

    def counted() -> int:
        if not any(folder.glob("batch=*/_SUCCESS")):
            return 0
        table = pyarrow.dataset.dataset(folder, format="parquet", partitioning="hive").to_table()
        return sum(table["count"].to_pylist())

    stack.source.wait_adopted(parallelism=4, splits=PARTITIONS, timeout=START)
    wait_until(lambda: counted() >= stack.produced, 180, "the records", interval=0.5)
    stack.produce(RECORDS)
    wait_until(lambda: counted() >= stack.produced, 180, "more records", interval=0.5)
    assert counted() == stack.produced


def test_a_source_logs_in_with_its_secret_over_tls(stack: ExampleStack) -> None:
    secret, source = stack.objects("secrets-and-tls")
    secret["stringData"]["sasl.password"] = PASSWORD
    secret["stringData"]["ssl.ca.pem"] = (stack.kafka.pki / "ca.crt").read_text()
    [cluster] = source["spec"]["source"]["kafka"]["clusters"]
    cluster["bootstrapServers"] = stack.kafka.bootstrap_of(Listener.SASL_TLS)

    stack.apply([secret, source])
    stack.source.wait_adopted(parallelism=1, splits=PARTITIONS, timeout=START)
    wait_until(lambda: stack.rows >= stack.produced, 180, "the records", interval=0.5)

    control_plane = stack.cluster.control_plane
    shown = [
        json.dumps(control_plane.items(kind))
        for kind in ("bsrc", APPLICATION, "pods", "configmaps")
    ]
    assert not [text for text in (*shown, stack.cluster.all_logs(stack.driver)) if PASSWORD in text]


def test_changed_settings_wait_for_the_restart_window(stack: ExampleStack) -> None:
    [source] = stack.objects("restart-window")
    today = dt.datetime.now(dt.UTC)
    window = source["spec"]["application"]["restart"]["window"]
    # not open while this runs
    window["days"] = [f"{today + dt.timedelta(days=days):%a}" for days in (3, 4)]
    stack.apply([source])
    stack.source.wait_adopted(parallelism=4, splits=PARTITIONS, timeout=START)
    before = uid(stack)

    stack.source.patch({"application": {"sparkConf": {"spark.sql.shuffle.partitions": "3"}}})
    wait_until(lambda: stack.source.condition("RestartPending"), 60, "the condition", interval=0.2)
    assert stack.source.condition("RestartPending")["reason"] == "WaitingForWindow"
    assert uid(stack) == before

    start = f"{today - dt.timedelta(minutes=1):%H:%M}"
    stack.source.patch({"application": {"restart": {"window": {"days": None, "start": start}}}})
    wait_until(
        lambda: "spark.sql.shuffle.partitions" in conf_of(stack), 120, "the restart", interval=0.5
    )
    assert uid(stack) != before
    incarnation = stack.source.report.incarnation
    wait_until(
        lambda: stack.source.report.incarnation > incarnation, START, "the new driver", interval=0.5
    )


def test_a_horizontal_pod_autoscaler_follows_the_lag(stack: ExampleStack, tmp_path: Path) -> None:
    with MetricsServer(stack.cluster.control_plane, tmp_path) as metrics:
        metrics.value = 5_000
        stack.apply(stack.objects("hpa"))
        stack.source.wait_adopted(parallelism=1, splits=PARTITIONS, timeout=START)
        before = uid(stack)

        metrics.value = 35_000  # 10,000 for each reader
        stack.source.wait_adopted(parallelism=4, timeout=180)
        metrics.value = 90_000  # more than maxReplicas
        stack.source.wait_adopted(parallelism=8, timeout=180)

        assert uid(stack) == before
        stack.cluster.control_plane.kubectl("delete", "hpa/orders")


def test_the_operators_autoscaler_starts_at_its_minimum(stack: ExampleStack) -> None:
    stack.apply(stack.objects("autoscaling"))

    stack.source.wait_adopted(parallelism=2, splits=PARTITIONS, timeout=START)
    wait_until(lambda: stack.rows >= stack.produced, 180, "the records", interval=0.5)
    wait_until(
        lambda: stack.source.condition("Autoscaling").get("status") == "True",
        120,
        "a decision",
        interval=0.5,
    )
    assert stack.source.status["autoscaling"]["desiredReaders"] == 2


def test_keda_knows_the_fields_of_the_example(whole: ExampleStack) -> None:
    """Its definition of the ScaledObject takes the example, and refuses a misspelt field.

    KEDA does not run here.
    """
    scaled = next(each for each in whole.objects("keda") if each["kind"] == "ScaledObject")
    whole.apply([scaled])

    stored: dict[str, Any] = (
        whole.cluster.control_plane.get("scaledobjects.keda.sh", "orders") or {}
    )
    assert stored["spec"] == scaled["spec"]
    with pytest.raises(CommandError, match="minReplicas"):
        whole.apply([{**scaled, "spec": {**scaled["spec"], "minReplicas": 1}}])
