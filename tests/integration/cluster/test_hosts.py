"""Two applications read one source.

One joins while the other reads, readers are added, and one leaves.

About four minutes, so `make test` leaves it out: ``pytest -m e2e
tests/integration/cluster/test_hosts.py``.
"""

import contextlib
from typing import Any

import pytest

from demo.scene import Scene
from support.story.load import Load
from support.story.sink import check_delivery, rows
from testbed.errors import DeadlineError
from testbed.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]


def hosts(scene: Scene) -> list[dict[str, Any]]:
    return list(scene.source.status.get("hosts", []))


def wait_hosts(scene: Scene, *, splits: list[int], timeout: float) -> None:
    """Wait until hosts read so many splits each, and have adopted that."""

    def is_so() -> bool:
        status = scene.source.status
        found = status.get("hosts", [])
        counts = [host["splits"] for host in found if host["state"] == "Running"]
        adopted = {host["acknowledgedEpoch"] for host in found}
        return counts == splits and adopted == ({status["epoch"]} if splits else set())

    wait_until(is_so, timeout, f"hosts with {splits} splits", interval=0.5)


def test_a_source_moves_to_two_applications_and_back(scene: Scene, load: Load) -> None:
    before = scene.source.report
    scene.source.patch({"parallelism": 2, "application": {"hosts": {"count": 2}}})

    wait_hosts(scene, splits=[7, 6], timeout=180)
    assert scene.source.report.incarnation == before.incarnation, "the first host must not restart"
    assert len(scene.source.report.owners) == 7

    scene.source.patch({"parallelism": 4})
    wait_hosts(scene, splits=[7, 6], timeout=60)

    scene.source.patch({"application": {"hosts": {"count": 1}}})
    wait_hosts(scene, splits=[], timeout=60)
    assert scene.source.report.incarnation == before.incarnation
    applications = scene.cluster.control_plane.items(
        "sparkapplications.sparkoperator.k8s.io", "default"
    )
    assert [a["metadata"]["name"] for a in applications] == [
        scene.source.status["application"]["name"]
    ]

    load.stop()
    other = scene.sink.with_name(f"{scene.sink.name}-host-1")
    produced = sum(scene.expected.values())
    with contextlib.suppress(DeadlineError):
        wait_until(
            lambda: rows(scene.sink) + rows(other) >= produced,
            120,
            "all records to arrive",
            interval=0.5,
        )
    assert rows(other) > 0, "the second host has read"
    delivery = check_delivery(scene.sink, scene.expected, others=[other])
    assert delivery.is_exact, delivery.examples
