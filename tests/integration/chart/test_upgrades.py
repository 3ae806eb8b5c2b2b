"""Changes of a release that the API server must accept; no pod is started."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.builders import source_body
from testbed.control_plane import ControlPlane
from testbed.errors import CommandError
from testbed.helm import Helm
from testbed.waiting import wait_until

pytestmark = pytest.mark.integration
SYSTEM = "system"
NAME = "demo-balanced-source"
CRD = "balancedsources.balancedsource.io"

VERSIONS = pytest.mark.parametrize(
    "program", ["helm", pytest.param("helm4", marks=pytest.mark.slow)]
)
"""Helm 3 and 4. The newer one applies on the server, with owners of fields."""


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(tmp_path_factory.mktemp("upgrades")) as started:
        started.kubectl("create", "namespace", SYSTEM)
        yield started


def strategy(
    control_plane: ControlPlane, name: str = NAME, namespace: str = SYSTEM
) -> dict[str, Any]:
    found = control_plane.get("deployment", name, namespace)
    assert found is not None
    return dict(found["spec"]["strategy"])


@VERSIONS
def test_a_definition_that_is_not_kept_is_not_deleted_by_an_upgrade(
    control_plane: ControlPlane, chart: Path, tmp_path: Path, program: str
) -> None:
    """Helm asks the object whether it is kept, and not the values of the upgrade."""
    helm = Helm(tmp_path / "helm", control_plane=control_plane, program=program)
    helm("install", "demo", chart, "--namespace", SYSTEM, "--set", "crds.keep=false")

    with pytest.raises(CommandError, match=r"has installed the definition with crds\.keep=false"):
        helm("upgrade", "demo", chart, "--namespace", SYSTEM, "--set", "crds.install=false")

    assert control_plane.get("crd", "balancedsources.balancedsource.io") is not None
    helm("upgrade", "demo", chart, "--namespace", SYSTEM, "--set", "crds.keep=true")
    helm("upgrade", "demo", chart, "--namespace", SYSTEM, "--set", "crds.install=false")
    assert control_plane.get("crd", "balancedsources.balancedsource.io") is not None
    helm("uninstall", "demo", "--namespace", SYSTEM)


@pytest.fixture
def newer_chart(chart: Path, tmp_path: Path) -> Path:
    """A chart of a later release, whose definition has one more field."""
    made = tmp_path / "newer"
    shutil.copytree(chart, made)
    described = made / "Chart.yaml"
    described.write_text(
        re.sub(r"(?m)^(version|appVersion): .*", r"\1: 9.1.0", described.read_text())
    )
    file = next((made / "files").glob("*_balancedsources.yaml"))
    definition = yaml.safe_load(file.read_text())
    [version] = definition["spec"]["versions"]
    assignment = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assignment["assignment"]["properties"]["future"] = {"type": "string"}
    file.write_text(yaml.safe_dump(definition, sort_keys=False))
    return made


def future(control_plane: ControlPlane) -> str | None:
    """Return the field of a source that only the newer definition has."""
    found = control_plane.get("bsrc", "orders", "default")
    assert found is not None
    field: str | None = found["spec"]["assignment"].get("future")
    return field


def write_status(control_plane: ControlPlane) -> None:
    """Write as an operator does: the API server stores the whole source again."""
    patch = '{"status": {"message": "written"}}'
    where = ("bsrc/orders", "--namespace", "default", "--subresource=status")
    control_plane.kubectl("patch", *where, "--type=merge", "-p", patch)


@VERSIONS
def test_an_older_definition_does_not_replace_a_newer_one(
    control_plane: ControlPlane, chart: Path, newer_chart: Path, tmp_path: Path, program: str
) -> None:
    helm = Helm(tmp_path / "helm", control_plane=control_plane, program=program)
    helm("install", "demo", newer_chart, "--namespace", SYSTEM)
    source = source_body()
    source["metadata"] = {"name": "orders", "namespace": "default"}
    source["spec"]["assignment"] = {"strategy": "RoundRobin", "future": "tides"}
    control_plane.apply(source)
    refused = pytest.raises(CommandError, match=r"release 9\.1\.0, .* Set crds\.install=false")

    with refused:
        helm("upgrade", "demo", chart, "--namespace", SYSTEM)
    write_status(control_plane)
    assert future(control_plane) == "tides"

    helm("upgrade", "demo", chart, "--namespace", SYSTEM, "--set", "crds.install=false")
    write_status(control_plane)
    assert future(control_plane) == "tides"

    # a release that had no annotation yet
    control_plane.kubectl("annotate", f"crd/{CRD}", "balancedsource.io/crd-version-")
    with refused:
        helm("upgrade", "demo", chart, "--namespace", SYSTEM, "--set", "crds.install=true")

    older = "crds.install=true,crds.allowOlder=true"
    helm("upgrade", "demo", chart, "--namespace", SYSTEM, "--set", older)
    wait_until(lambda: future(control_plane) is None, 30, "the older schema", interval=0.1)
    write_status(control_plane)
    helm("upgrade", "demo", newer_chart, "--namespace", SYSTEM)
    assert future(control_plane) is None, "the field must be lost, or nothing had to be refused"

    # text that is no version: someone's edit
    edited = ("balancedsource.io/crd-version=unknown", "--overwrite")
    control_plane.kubectl("annotate", f"crd/{CRD}", *edited)
    settings = ("--set", "crds.allowOlder=false", "--dry-run=server")
    helm("upgrade", "demo", chart, "--namespace", SYSTEM, *settings)
    control_plane.kubectl("annotate", f"crd/{CRD}", "balancedsource.io/crd-version-")
    helm("upgrade", "demo", chart, "--namespace", SYSTEM, "--set", older)
    control_plane.kubectl("delete", "bsrc", "orders", "--namespace", "default")
    helm("uninstall", "demo", "--namespace", SYSTEM)


def test_a_rollback_restores_an_older_definition_and_one_step_forward_may_come_in_time(
    control_plane: ControlPlane, chart: Path, newer_chart: Path, tmp_path: Path
) -> None:
    """Helm does not render a stored revision again, so nothing can refuse this."""
    helm = Helm(tmp_path / "helm", control_plane=control_plane)
    helm("install", "demo", chart, "--namespace", SYSTEM)
    helm("upgrade", "demo", newer_chart, "--namespace", SYSTEM)
    source = source_body()
    source["metadata"] = {"name": "orders", "namespace": "default"}
    source["spec"]["assignment"] = {"strategy": "RoundRobin", "future": "tides"}
    control_plane.apply(source)

    helm("rollback", "demo", "1", "--namespace", SYSTEM)
    wait_until(lambda: future(control_plane) is None, 30, "the older schema", interval=0.1)
    helm("upgrade", "demo", newer_chart, "--namespace", SYSTEM)
    wait_until(
        lambda: future(control_plane) == "tides", 30, "what was not written since", interval=0.1
    )

    helm("rollback", "demo", "1", "--namespace", SYSTEM)
    wait_until(lambda: future(control_plane) is None, 30, "the older schema", interval=0.1)
    write_status(control_plane)
    helm("upgrade", "demo", newer_chart, "--namespace", SYSTEM)
    assert future(control_plane) is None
    control_plane.kubectl("delete", "bsrc", "orders", "--namespace", "default")
    helm("upgrade", "demo", chart, "--namespace", SYSTEM, "--set", "crds.allowOlder=true")
    helm("uninstall", "demo", "--namespace", SYSTEM)


@VERSIONS
def test_leader_election_can_be_switched_off_by_helm(
    control_plane: ControlPlane, chart: Path, tmp_path: Path, program: str
) -> None:
    helm = Helm(tmp_path / "helm", control_plane=control_plane, program=program)
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


class Release:
    """A release of its own in a namespace of its own; the definition is there already."""

    def __init__(
        self,
        control_plane: ControlPlane,
        chart: Path,
        folder: Path,
        name: str,
        program: str = "helm",
    ) -> None:
        self._plane, self._chart, self._name = control_plane, chart, name
        self._helm = Helm(folder / program, control_plane=control_plane, program=program)
        control_plane.kubectl("create", "namespace", name)

    def __call__(self, verb: str, *settings: str) -> None:
        """Run helm install, upgrade or uninstall."""
        chart = () if verb == "uninstall" else (self._chart, "--set", "crds.install=false")
        self._helm(verb, self._name, *chart, "--namespace", self._name, *settings)

    @property
    def lease(self) -> dict[str, Any] | None:
        """The Lease in its namespace."""
        return self._plane.get("lease", "balanced-source-operator", self._name)


@VERSIONS
def test_an_uninstall_leaves_no_lease_with_a_dead_holder(
    control_plane: ControlPlane, chart: Path, tmp_path: Path, program: str
) -> None:
    release = Release(control_plane, chart, tmp_path, f"leased-{program}", program)
    release("install")
    # as the leader does
    held = '{"spec": {"holderIdentity": "demo-1", "leaseDurationSeconds": 15}}'
    name = "lease/balanced-source-operator"
    control_plane.kubectl("patch", name, "-n", f"leased-{program}", "--type=merge", "-p", held)

    release("upgrade", "--set", "logging.debug=true")
    assert release.lease is not None
    assert release.lease["spec"]["holderIdentity"] == "demo-1", "an upgrade must not touch it"

    release("uninstall")
    assert release.lease is None


@VERSIONS
def test_drivers_keep_their_account_when_the_release_is_uninstalled(
    control_plane: ControlPlane, chart: Path, tmp_path: Path, program: str
) -> None:
    """They run on, report, and replace executors. The next install takes the account over."""
    name = f"drivers-{program}"
    release = Release(control_plane, chart, tmp_path, name, program)
    jobs = ("--set", f"spark.jobNamespaces={{{name}}}")
    release("install", *jobs)
    release("uninstall")

    full = f"{name}-balanced-source"
    for kind, kept in (("serviceaccount", "spark"), ("role", f"{full}-spark")):
        assert control_plane.get(kind, kept, name) is not None
    assert control_plane.get("rolebinding", f"{full}-spark", name) is not None
    assert control_plane.get("deployment", full, name) is None

    release("install", *jobs)
    release("uninstall")


def test_a_lease_that_an_operator_has_created_is_left_alone(
    control_plane: ControlPlane, chart: Path, tmp_path: Path
) -> None:
    """Operators of release 0.1.0 did; Helm refuses to install over objects of others."""
    release = Release(control_plane, chart, tmp_path, "older")
    metadata = {"name": "balanced-source-operator", "namespace": "older"}
    control_plane.apply(
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    )

    release("install")
    release("upgrade", "--set", "logging.debug=true")
    release("uninstall")

    assert release.lease is not None


@pytest.mark.slow
def test_a_release_of_helm_3_is_upgraded_and_rolled_back_by_helm_4(
    control_plane: ControlPlane, chart: Path, tmp_path: Path
) -> None:
    release = Release(control_plane, chart, tmp_path, "both")
    newer = Helm(tmp_path / "helm4", control_plane=control_plane, program="helm4")
    place = ("both-balanced-source", "both")
    release("install")

    settings = ("--set", "crds.install=false,leaderElection.enabled=false")
    newer("upgrade", "both", chart, "--namespace", "both", *settings)
    assert strategy(control_plane, *place) == {"type": "Recreate"}
    newer("rollback", "both", "1", "--namespace", "both")
    assert strategy(control_plane, *place)["type"] == "RollingUpdate"

    newer("uninstall", "both", "--namespace", "both")
    assert control_plane.get("deployment", *place) is None
