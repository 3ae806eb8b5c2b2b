"""A cluster to examine: the API server in memory, with what only `ask` can tell."""

from collections.abc import Mapping
from typing import Any

from balanced_source_operator.kube.port import KubernetesError, Manifest, RefusedError
from balanced_source_operator.spec.crd import custom_resource_definition
from support.fake_kubernetes import FakeClient, FakeKubernetes

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/balancedsources.balancedsource.io"
SPARK = "/apis/sparkoperator.k8s.io/v1beta2"
APACHE = "/apis/spark.apache.org/v1"
DEPLOYMENTS = "/apis/apps/v1/deployments?labelSelector=app.kubernetes.io%2Fname%3Dbalanced-source"


class Examined(FakeClient):
    """A healthy cluster.

    Attributes:
        answers: path → answer; None refuses it as not found.
        forbidden: ``verb resource`` that the operator's account may not do.
        is_reachable: whether the API server answers.
    """

    def __init__(self, server: FakeKubernetes) -> None:
        super().__init__(server)
        self.answers: dict[str, Any] = {
            "/version": {},
            CRD: custom_resource_definition(),
            SPARK: {},
            DEPLOYMENTS: {"items": [deployment()]},
        }
        self.forbidden: set[str] = set()
        self.is_reachable = True

    async def ask(self, method: str, path: str, *, body: Manifest | None = None) -> Manifest:
        if not self.is_reachable:
            raise KubernetesError("the API server does not answer: connection refused")
        if body is not None:
            asked = body["spec"]["resourceAttributes"]
            return {
                "status": {"allowed": f"{asked['verb']} {asked['resource']}" not in self.forbidden}
            }
        answer: Mapping[str, Any] | None = self.answers.get(path)
        if answer is None:
            raise RefusedError(f"{method} {path}: not found", status=404)
        return answer


def deployment(*, available: int = 1) -> dict[str, Any]:
    """The operator's Deployment."""
    return {
        "metadata": {"namespace": "system", "name": "balanced-source"},
        "spec": {"template": {"spec": {"serviceAccountName": "operator"}}},
        "status": {"availableReplicas": available},
    }
