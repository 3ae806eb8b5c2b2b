"""The operator as a user that has no name, no home and nothing to write to, as on OpenShift."""

import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.story.operator_process import OperatorProcess
from testbed.control_plane import ControlPlane
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may start processes of other users"),
]
UID = 1000740000
AS_UNKNOWN_USER = (
    "setpriv",
    *(f"--reuid={UID}", "--regid=0", "--clear-groups", "--no-new-privs"),
    # It may read what the image would let everyone read: the tests' Python may lie in root's home.
    *("--inh-caps=-all,+dac_read_search", "--ambient-caps=+dac_read_search"),
    "--bounding-set=-all,+dac_read_search",
    # A change of the user clears what the supervisor has set.
    *("--pdeathsig=KILL", "--"),
)


@pytest.fixture
def control_plane(tmp_path: Path) -> Iterator[ControlPlane]:
    with ControlPlane(tmp_path, crds=[CHECKOUT / "crds"]) as started:
        yield started


@pytest.fixture
def operator(control_plane: ControlPlane) -> Iterator[OperatorProcess]:
    environment = {"HOME": "/", "PYTHONDONTWRITEBYTECODE": "1"}  # as in the image
    process = OperatorProcess(
        control_plane,
        prefix=AS_UNKNOWN_USER,
        environment=environment,
        settings={"IDENTITY": "pod-1", "LEASE_NAMESPACE": "default"},
    )
    process.start()
    yield process
    process.kill()


def source() -> dict[str, Any]:
    """A source whose broker does not answer."""
    kafka = {
        "clusters": [{"name": "main", "bootstrapServers": "127.0.0.1:1"}],
        "subscription": {"topics": ["orders"]},
    }
    pipeline = {"sink": {"format": "noop"}, "checkpointLocation": "/checkpoint"}
    application = {"image": "spark", "sparkVersion": "4.2.0", "pipeline": pipeline}
    return {
        "apiVersion": "balancedsource.io/v1alpha1",
        "kind": "BalancedSource",
        "metadata": {"name": "orders", "namespace": "default"},
        "spec": {"parallelism": 2, "source": {"kafka": kafka}, "application": application},
    }


def test_the_operator_works_as_a_user_without_a_name(
    control_plane: ControlPlane, operator: OperatorProcess
) -> None:
    with pytest.raises(KeyError):
        pwd.getpwuid(UID)
    assert psutil.Process(operator.pid).uids().effective == UID

    control_plane.apply(source())

    def conditions() -> list[dict[str, Any]]:
        found = control_plane.get("balancedsources", "orders", "default") or {}
        return list(found.get("status", {}).get("conditions", []))

    wait_until(conditions, 60, "the operator to report on the source")
    assert operator.is_running
    for word in ("Permission denied", "Read-only", "uid not found", "Traceback"):
        assert word not in operator.log
