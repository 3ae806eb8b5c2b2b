"""The operator's process when it loses its Lease, or is told to stop.

It ends, whatever it is at.
"""

import json
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from balanced_source_operator.leadership import LEASE_SECONDS
from balanced_source_operator.resources.kinds import LEASE_NAME
from support.story.operator_process import OperatorProcess
from testbed.control_plane import ControlPlane
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

NAMESPACE = "lease"


@pytest.fixture
def control_plane(tmp_path: Path) -> Iterator[ControlPlane]:
    with ControlPlane(tmp_path, crds=[CHECKOUT / "crds"]) as started:
        started.kubectl("create", "namespace", NAMESPACE)
        yield started


@pytest.fixture
def operator(control_plane: ControlPlane) -> Iterator[OperatorProcess]:
    process = OperatorProcess(
        control_plane, settings={"LEASE_NAMESPACE": NAMESPACE, "IDENTITY": "first"}
    )
    process.start()
    wait_until(lambda: is_watching(control_plane), 30, "the operator to watch sources")
    yield process
    process.kill()


def is_watching(control_plane: ControlPlane) -> bool:
    """Return whether someone watches sources.

    Until then, an API server that goes away ends kopf's own start.
    """
    lines = control_plane.kubectl("get", "--raw", "/metrics").splitlines()
    watches = [
        line
        for line in lines
        if line.startswith("apiserver_longrunning_requests") and 'verb="WATCH"' in line
    ]
    return any('resource="balancedsources"' in line and not line.endswith(" 0") for line in watches)


def taken(control_plane: ControlPlane) -> None:
    """Another replica holds the Lease, and renews it."""
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {
        "holderIdentity": "second",
        "leaseDurationSeconds": 3600,
        "acquireTime": stamp,
        "renewTime": stamp,
    }
    patch = json.dumps({"spec": spec})
    control_plane.kubectl(
        "patch", "lease", LEASE_NAME, "-n", NAMESPACE, "--type=merge", "-p", patch
    )


def down(control_plane: ControlPlane) -> None:
    """The API server refuses connections."""
    control_plane.kill_apiserver()


def frozen(control_plane: ControlPlane) -> None:
    """The API server accepts connections and never answers."""
    control_plane.signal_apiserver(signal.SIGSTOP)


@pytest.mark.parametrize("lose", [taken, down, frozen])
def test_a_leader_without_its_lease_ends_its_process_before_the_lease_runs_out(
    control_plane: ControlPlane, operator: OperatorProcess, lose: Callable[[ControlPlane], None]
) -> None:
    lose(control_plane)

    assert operator.wait_exit(LEASE_SECONDS + 5) == 1
    assert "lost the Lease" in operator.log


def test_sigterm_ends_the_process_and_frees_the_lease(
    control_plane: ControlPlane, operator: OperatorProcess
) -> None:
    operator.signal(signal.SIGTERM)

    assert operator.wait_exit(20) == 0
    lease = control_plane.get("lease", LEASE_NAME, NAMESPACE)
    assert lease is not None
    assert not lease["spec"].get("holderIdentity")


def test_sigterm_ends_the_process_although_the_api_server_is_silent(
    control_plane: ControlPlane, operator: OperatorProcess
) -> None:
    control_plane.signal_apiserver(signal.SIGSTOP)
    operator.signal(signal.SIGTERM)

    operator.wait_exit(25)


def test_a_leader_that_was_frozen_longer_than_its_lease_does_nothing_more(
    control_plane: ControlPlane, operator: OperatorProcess
) -> None:
    operator.signal(signal.SIGSTOP)
    taken(control_plane)
    second = OperatorProcess(
        control_plane, settings={"LEASE_NAMESPACE": NAMESPACE, "IDENTITY": "second"}, name="second"
    )
    second.start()
    wait_until(lambda: '"serving"' in second.log, 40, "the second replica to lead")
    operator.signal(signal.SIGCONT)

    assert operator.wait_exit(LEASE_SECONDS) == 1
    second.kill()
