"""Changes of a release that the API server must accept; no pod is started."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.control_plane import ControlPlane
from testbed.errors import CommandError
from testbed.helm import Helm

pytestmark = pytest.mark.integration
SYSTEM = "system"
NAME = "demo-balanced-source"


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(tmp_path_factory.mktemp("upgrades")) as started:
        started.kubectl("create", "namespace", SYSTEM)
        yield started


def strategy(control_plane: ControlPlane) -> dict[str, Any]:
    found = control_plane.get("deployment", NAME, SYSTEM)
    assert found is not None
    return dict(found["spec"]["strategy"])


def test_leader_election_can_be_switched_off_by_helm(
    control_plane: ControlPlane, chart: Path, tmp_path: Path
) -> None:
    helm = Helm(tmp_path / "helm", control_plane=control_plane)
    helm("install", "demo", chart, "--namespace", SYSTEM)
    assert strategy(control_plane)["type"] == "RollingUpdate"

    helm("upgrade", "demo", chart, "--namespace", SYSTEM, "--set", "leaderElection.enabled=false")

    assert strategy(control_plane) == {"type": "Recreate"}
    with pytest.raises(CommandError, match="would delete the definition"):
        helm(
            "upgrade",
            "demo",
            chart,
            "--namespace",
            SYSTEM,
            "--set",
            "crds.install=false,crds.keep=false",
        )
    assert control_plane.get("crd", "balancedsources.balancedsource.io") is not None
    helm("uninstall", "demo", "--namespace", SYSTEM)


def test_leader_election_can_be_switched_off_by_server_side_apply(
    control_plane: ControlPlane, chart: Path, tmp_path: Path
) -> None:
    """What the API server adds to a strategy is unowned, stays, and is forbidden with Recreate."""
    helm = Helm(tmp_path / "helm", control_plane=control_plane)

    def apply(*settings: str) -> None:
        text = helm("template", "demo", chart, "--namespace", SYSTEM, "--no-hooks", *settings)
        control_plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)

    apply()
    assert "rollingUpdate" in strategy(control_plane)

    apply("--set", "leaderElection.enabled=false")

    assert strategy(control_plane) == {"type": "Recreate"}
