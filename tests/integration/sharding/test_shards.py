"""Two operators share a real API server by a label of namespaces, each with the chart's rights."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, Configuration

from balanced_source_operator.doctor.namespaces import Installation, serving
from balanced_source_operator.kube.client import KubernetesClient
from support.builders import spec_json
from support.shelf_connector import KIND, register
from support.stand_in_driver import StandInDriver
from support.story.operator_process import OperatorProcess
from support.story.watch import SourceView
from testbed.builds import SPARK_OPERATOR_FILES, Builder
from testbed.control_plane import ControlPlane
from testbed.errors import DeadlineError, TestbedError
from testbed.helm import Helm
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

pytestmark = pytest.mark.integration

_numbers = itertools.count(1)
LABEL: Final = "balancedsource.io/shard"
SELECTORS: Final = {"a": f"{LABEL}=a", "b": f"{LABEL} in (b, b-2), !legacy"}
SECONDS: Final = 20.0
"""A change of a label takes effect within this time, also on a busy machine."""


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    crds = Builder().ensure(SPARK_OPERATOR_FILES)[SPARK_OPERATOR_FILES] / "crds"
    folder = tmp_path_factory.mktemp("shards")
    with ControlPlane(folder, crds=[crds, CHECKOUT / "crds"]) as started:
        yield started


@pytest.fixture(scope="module")
def operators(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, OperatorProcess]]:
    connector = tmp_path_factory.mktemp("connector")
    register(connector)
    made = {name: operator(control_plane, connector, name) for name in SELECTORS}
    for process in made.values():
        process.start()
    yield made
    for process in made.values():
        process.stop()


def operator(control_plane: ControlPlane, connector: Path, name: str) -> OperatorProcess:
    """An operator that has the rights of a release, and no others."""
    user, selector = f"operator-{name}", SELECTORS[name]
    helm = Helm(control_plane.run_dir / f"helm-{name}")
    values = helm.values("shard", {"watchNamespaceSelector": selector})
    chart = CHECKOUT / "charts" / "balanced-source"
    text = helm("template", name, chart, "--values", values, "--show-only", "templates/rbac.yaml")
    (role,) = (d for d in yaml.safe_load_all(text) if d["kind"] == "ClusterRole")
    control_plane.apply(role)
    control_plane.create_user(user)
    grant = (f"--clusterrole={role['metadata']['name']}", f"--user={user}")
    control_plane.kubectl("create", "clusterrolebinding", user, *grant)
    paths = [str(connector), str(CHECKOUT / "tests"), os.environ.get("PYTHONPATH", "")]
    return OperatorProcess(
        control_plane,
        user=user,
        name=user,
        settings={"NAMESPACE_SELECTOR": selector, "INSTANCE": f"{name}/operator"},
        environment={"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )


class Jobs:
    """A namespace with a source, and the source's driver."""

    def __init__(self, control_plane: ControlPlane, name: str) -> None:
        self._plane, self.name = control_plane, name
        self.source = SourceView(control_plane.kubectl, "orders", name)
        self._driver: StandInDriver | None = None
        control_plane.kubectl("create", "namespace", name)
        control_plane.kubectl("create", "serviceaccount", "spark", "-n", name)

    def apply(self) -> None:
        self._plane.apply(
            {
                "apiVersion": "balancedsource.io/v1alpha1",
                "kind": "BalancedSource",
                "metadata": {"name": "orders", "namespace": self.name},
                "spec": spec_json(source={"custom": {"connector": KIND, "config": {}}}),
            }
        )

    def label(self, shard: str) -> None:
        """Give the namespace to a shard; empty takes the label away."""
        word = f"{LABEL}={shard}" if shard else f"{LABEL}-"
        self._plane.kubectl("label", "namespace", self.name, "--overwrite", word)

    def scale(self, parallelism: int) -> None:
        self._plane.kubectl("scale", "bsrc/orders", "-n", self.name, f"--replicas={parallelism}")

    @property
    def served_by(self) -> str:
        found: str = self.source.get().get("status", {}).get("servedBy", "")
        return found

    def wait_served(self, shard: str) -> None:
        wait_until(lambda: self.served_by == f"{shard}/operator", SECONDS, f"operator {shard}")

    def adopt(self, parallelism: int) -> None:
        if self._driver is None:
            uid = self.source.get()["metadata"]["uid"]
            self._driver = StandInDriver(self._plane, self.name, "orders", uid)
        self._driver.adopt(parallelism=parallelism, timeout=SECONDS)

    def children(self) -> dict[str, str]:
        """Kind and uid of each object of the source."""
        kinds = "configmaps,roles,rolebindings,sparkapplications.sparkoperator.k8s.io"
        found = self._plane.items(kinds, self.name, "balancedsource.io/name")
        return {item["metadata"]["uid"]: item["kind"] for item in found}

    def close(self) -> None:
        if self._driver is not None:
            self._driver.close()


@pytest.fixture
def jobs(control_plane: ControlPlane) -> Iterator[Jobs]:
    made = Jobs(control_plane, f"jobs-{next(_numbers)}")
    yield made
    made.close()


def problems(operators: dict[str, OperatorProcess]) -> list[str]:
    words = ("forbidden", "Forbidden", "Not enough permissions", "Traceback")
    lines = [line for process in operators.values() for line in process.log.splitlines()]
    return [line for line in lines if any(word in line for word in words)]


def test_a_source_moves_with_the_label_of_its_namespace(
    operators: dict[str, OperatorProcess], jobs: Jobs
) -> None:
    jobs.label("a")
    jobs.apply()
    jobs.wait_served("a")
    jobs.adopt(2)
    before = jobs.children()
    assert set(before.values()) == {"ConfigMap", "Role", "RoleBinding", "SparkApplication"}

    jobs.label("b")
    jobs.scale(3)
    jobs.adopt(3)
    jobs.wait_served("b")

    jobs.label("")
    wait_until(lambda: "no longer served" in operators["b"].log, SECONDS, "b to let it go")
    epoch = jobs.source.get()["status"]["epoch"]
    jobs.scale(5)
    with pytest.raises(DeadlineError):
        wait_until(lambda: jobs.source.get()["status"]["epoch"] != epoch, 8, "nothing")

    jobs.label("a")
    jobs.adopt(5)
    jobs.wait_served("a")
    assert jobs.children() == before, "nothing was deleted or made anew"
    assert problems(operators) == []


@pytest.mark.thorough
def test_an_unlabelled_source_is_served_when_its_namespace_gets_the_label(
    operators: dict[str, OperatorProcess], jobs: Jobs
) -> None:
    jobs.apply()
    with pytest.raises(DeadlineError):
        wait_until(lambda: jobs.served_by, 5, "nothing")

    jobs.label("b")
    jobs.wait_served("b")
    jobs.adopt(2)
    assert problems(operators) == []


@pytest.mark.thorough
def test_labels_are_followed_after_an_outage_of_the_api_server(
    control_plane: ControlPlane, operators: dict[str, OperatorProcess], jobs: Jobs
) -> None:
    jobs.label("a")
    jobs.apply()
    jobs.wait_served("a")
    jobs.adopt(2)

    control_plane.kill_apiserver()
    control_plane.start_apiserver()

    jobs.scale(4)
    jobs.adopt(4)
    assert jobs.served_by == "a/operator"
    jobs.label("b")
    jobs.scale(3)
    jobs.adopt(3)
    jobs.wait_served("b")
    assert all(process.is_running for process in operators.values())


@pytest.mark.asyncio
async def test_the_doctor_lets_the_api_server_match(
    control_plane: ControlPlane, jobs: Jobs
) -> None:
    jobs.label("a")
    configuration = Configuration()
    await config.load_kube_config(
        str(control_plane.kubeconfig()), client_configuration=configuration
    )
    account = ("system", "operator")
    releases = [
        Installation(name, account, f"{LABEL} in ({name},{name}-2),!legacy") for name in ("a", "b")
    ]

    async with ApiClient(configuration) as client:
        api = KubernetesClient(client)
        assert await serving(api, releases, jobs.name) == (releases[:1], [])
        operators, (fault,) = await serving(api, releases[1:], jobs.name)

    assert (operators, fault.fault) == ([], "NamespaceNotServed")


def test_names_and_a_selector_end_the_operator_with_a_sentence(
    control_plane: ControlPlane,
) -> None:
    wrong = {"NAMESPACES": "jobs", "NAMESPACE_SELECTOR": f"{LABEL}=a"}
    process = OperatorProcess(control_plane, name="wrong", settings=wrong)
    with pytest.raises(TestbedError, match="wrong"):
        process.start()

    assert "cannot be combined with BALANCED_SOURCE_NAMESPACES" in process.log
    assert "Traceback" not in process.log
