"""What only a real driver can show.

Crashes, outages and wrong states, and that every record still arrives once.

The tests share one cluster and one source, as faults do in a long life; the last one counts.
"""

import contextlib
import json
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from demo.scene import Scene
from support.story.load import Load
from support.story.sink import check_delivery, rows
from testbed.errors import DeadlineError
from testbed.waiting import wait_until

OUTAGE = 60.0
"""Seconds without an API server."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.usefixtures("load")]


def newest(scene: Scene) -> int:
    """Number of the newest micro-batch, from the driver's log on disk: it needs no API server."""
    return max((batch.number for batch in scene.batches_on_disk()), default=-1)


def test_a_killed_driver_replays_its_batch_and_registers_again(scene: Scene) -> None:
    before = scene.source.report
    seen = newest(scene)

    scene.cluster.kill_pod_process(scene.driver)

    wait_until(
        lambda: scene.source.report.incarnation > before.incarnation,
        180,
        "a new driver",
        interval=0.5,
    )
    wait_until(
        lambda: newest(scene) > seen + 3, 120, "micro-batches of the new driver", interval=0.5
    )
    assert scene.source.assignment.epoch >= before.epoch


def test_the_query_continues_without_an_api_server(scene: Scene) -> None:
    incarnation = scene.source.report.incarnation
    seen = newest(scene)
    scene.cluster.control_plane.kill_apiserver()
    down = time.monotonic()

    wait_until(
        lambda: newest(scene) > seen + 10, OUTAGE, "micro-batches while it is down", interval=0.5
    )
    near_the_end = OUTAGE - 5 - (time.monotonic() - down)
    wait_until(
        lambda: time.monotonic() - down > OUTAGE - 5,
        near_the_end + 5,
        "the outage to last",
        interval=0.5,
    )
    late = newest(scene)
    wait_until(lambda: newest(scene) > late, 30, "micro-batches after a minute", interval=0.5)

    scene.cluster.control_plane.start_apiserver()
    scene.source.patch({"parallelism": 3})
    scene.source.wait_adopted(parallelism=3, timeout=120)
    assert scene.source.report.incarnation == incarnation


def test_failed_with_a_living_driver_is_left_alone_and_said(scene: Scene) -> None:
    name, incarnation = scene.source.status["application"]["name"], scene.source.report.incarnation
    seen = newest(scene)
    pod = scene.driver_pod["metadata"]["uid"]

    _say_failed(scene, name)

    wait_until(
        lambda: _says_state_is_wrong(scene),
        30,
        "the condition to say that the state is wrong",
        interval=0.1,
    )
    wait_until(lambda: newest(scene) > seen + 3, 60, "micro-batches all the same", interval=0.5)
    assert scene.driver_pod["metadata"]["uid"] == pod
    assert scene.source.report.incarnation == incarnation


def test_a_support_bundle_has_the_logs_of_driver_and_executors(
    scene: Scene, tmp_path: Path
) -> None:
    environment = {
        "KUBECONFIG": str(scene.cluster.control_plane.kubeconfig()),
        "PATH": "/usr/bin:/bin",
    }
    command = [
        sys.executable,
        "-m",
        "balanced_source_operator.command",
        "report",
        "orders",
        "--to",
        "bundle.zip",
    ]
    done = subprocess.run(  # noqa: S603 - our own interpreter
        command,
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert "report: bundle.zip" in done.stdout, done.stderr
    with zipfile.ZipFile(tmp_path / "bundle.zip") as bundle:
        texts = {name: bundle.read(name).decode() for name in bundle.namelist()}
    driver = scene.driver_pod["metadata"]["name"]
    logs = [text for name, text in texts.items() if name.startswith(f"logs/default/{driver}/")]
    assert any('"event": "batch"' in log for log in logs), sorted(texts)
    assert any(name.startswith("objects/sparkapplications.sparkoperator.k8s.io/") for name in texts)


def test_every_record_has_arrived_once(scene: Scene, load: Load) -> None:
    load.stop()
    with contextlib.suppress(DeadlineError):
        wait_until(
            lambda: rows(scene.sink) >= load.produced, 120, "all records to arrive", interval=0.5
        )
    delivery = check_delivery(scene.sink, scene.expected)
    assert delivery.is_exact, delivery.examples
    assert delivery.delivered == load.produced > 0


def _say_failed(scene: Scene, name: str) -> None:
    state = {"status": {"applicationState": {"state": "FAILED", "errorMessage": "a test says so"}}}
    kind = "sparkapplications.sparkoperator.k8s.io"
    scene.kubectl(
        "patch", kind, name, "--subresource=status", "--type=merge", "-p", json.dumps(state)
    )


def _says_state_is_wrong(scene: Scene) -> bool:
    conditions = scene.source.status.get("conditions", [])
    return any(condition.get("reason") == "ApplicationStateWrong" for condition in conditions)
