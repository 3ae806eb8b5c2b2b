"""One control plane and one broker; each fault has a namespace of its own."""

import copy
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from balanced_source_operator.kube.rights import NEEDED
from support.builders import spec_json
from testbed.control_plane import ControlPlane
from testbed.kafka import KafkaCluster
from testbed.ports import PortPool
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

ACCOUNT = "doctor:operator"
SPARK_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "sparkapplications.sparkoperator.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved"},
    },
    "spec": {
        "group": "sparkoperator.k8s.io",
        "scope": "Namespaced",
        "names": {
            "kind": "SparkApplication",
            "plural": "sparkapplications",
            "singular": "sparkapplication",
        },
        "versions": [
            {
                "name": "v1beta2",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}
RULES = [
    {
        "apiGroups": [kind.group],
        "resources": [f"{kind.plural}/{subresource}" if subresource else kind.plural],
        "verbs": list(verbs),
    }
    for kind, subresource, verbs in NEEDED
]


class Hospital:
    """A cluster into which faults are put."""

    def __init__(self, control_plane: ControlPlane, kafka: KafkaCluster) -> None:
        self.control_plane = control_plane
        self.kafka = kafka
        self._numbers = itertools.count(1)

    def apply(self, *manifests: Mapping[str, Any]) -> None:
        for manifest in manifests:
            self.control_plane.apply(manifest)

    def install(self) -> None:
        """Everything that a healthy cluster has."""
        self.control_plane.apply(CHECKOUT / "crds")
        self.apply(SPARK_CRD)
        for crd in ("balancedsources.balancedsource.io", "sparkapplications.sparkoperator.k8s.io"):
            self.control_plane.wait_established(crd)
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "operator"},
        }
        self.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "doctor"}},
            {**role, "rules": RULES},
        )

    def grant(self, namespace: str) -> None:
        """Give the operator's account its rights in a namespace."""
        rbac = {"apiVersion": "rbac.authorization.k8s.io/v1"}
        self.apply(
            {
                **rbac,
                "kind": "RoleBinding",
                "metadata": {"name": "operator", "namespace": namespace},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "operator",
                },
                "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": "doctor"}],
            }
        )

        wait_until(lambda: self._may_read_secrets(namespace), 60, "the rights", interval=0.2)

    def _may_read_secrets(self, namespace: str) -> bool:
        """The API server takes over roles a moment after they were created."""
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": "system:serviceaccount:doctor:operator",
                "resourceAttributes": {
                    "namespace": namespace,
                    "verb": "get",
                    "resource": "secrets",
                },
            },
        }
        answer = self.control_plane.kubectl(
            "create", "-f", "-", "-o", "json", stdin=json.dumps(review)
        )
        return bool(json.loads(answer)["status"]["allowed"])

    def namespace(self, *, is_granted: bool = True) -> str:
        """A new namespace with a driver's account."""
        name = f"ward-{next(self._numbers)}"
        self.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "spark", "namespace": name},
            },
        )
        if is_granted:
            self.grant(name)
        return name

    def spec(self) -> dict[str, Any]:
        """Of a healthy source."""
        spec: dict[str, Any] = copy.deepcopy(spec_json())
        spec["source"]["kafka"]["clusters"][0]["bootstrapServers"] = self.kafka.bootstrap
        return spec

    def admit(
        self, namespace: str, spec: Mapping[str, Any], status: Mapping[str, Any] | None = None
    ) -> None:
        """Create the source `orders`, with the status that an operator would have written."""
        body = {"apiVersion": "balancedsource.io/v1alpha1", "kind": "BalancedSource"}
        self.apply({**body, "metadata": {"name": "orders", "namespace": namespace}, "spec": spec})
        patch = {"status": {"observedGeneration": 1} if status is None else status}
        self.control_plane.kubectl(
            "patch",
            "bsrc/orders",
            "-n",
            namespace,
            "--subresource=status",
            "--type=merge",
            "-p",
            json.dumps(patch),
        )

    def faults(self, namespace: str, *arguments: str, kubeconfig: Path | None = None) -> list[str]:
        """What the command finds, as a user runs it."""
        command = [
            sys.executable,
            "-m",
            "balanced_source_operator.command",
            "doctor",
            "-n",
            namespace,
            "-o",
            "json",
        ]
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [*command, *(arguments or ("--operator", ACCOUNT))],
            env={
                "KUBECONFIG": str(kubeconfig or self.control_plane.kubeconfig()),
                "PATH": "/usr/bin:/bin",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.stdout, done.stderr
        found = json.loads(done.stdout)
        errors = [diagnosis for diagnosis in found if diagnosis["level"] == "error"]
        assert done.returncode == (1 if errors else 0)
        assert all(diagnosis["message"] and diagnosis["remedy"] for diagnosis in errors), errors
        return sorted(diagnosis["fault"] for diagnosis in errors)


@pytest.fixture(scope="session")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hospital]:
    with (
        ControlPlane(tmp_path_factory.mktemp("control-plane")) as control_plane,
        KafkaCluster("main", tmp_path_factory.mktemp("kafka")) as kafka,
    ):
        kafka.admin.create_topic("orders", 2)
        yield Hospital(control_plane, kafka)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of loopback on which nothing listens."""
    pool = PortPool()
    yield pool.take()
    pool.close()
