"""A cluster to examine: the API server in memory, with what only `ask` can tell."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_plus

from balanced_source_operator.kube.port import KubernetesError, Manifest, RefusedError
from balanced_source_operator.spec.crd import custom_resource_definition
from support.fake_kubernetes import FakeClient, FakeKubernetes

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/balancedsources.balancedsource.io"
SPARK = "/apis/sparkoperator.k8s.io/v1beta2"
APACHE = "/apis/spark.apache.org/v1"
OF_OPERATORS = "labelSelector=balancedsource.io%2Fcomponent%3Doperator"
OF_FORMER_OPERATORS = "labelSelector=app.kubernetes.io%2Fname%3Dbalanced-source"
DEPLOYMENTS = f"/apis/apps/v1/deployments?{OF_OPERATORS}"

LABELS = "/api/v1/namespaces?labelSelector="


class Examined(FakeClient):
    """A healthy cluster.

    Attributes:
        answers: path → answer; None refuses it as not found.
        forbidden: ``verb resource`` that the operator's account may not do.
        is_reachable: whether the API server answers.
        labels: selectors that match the namespace; None if namespaces may not be listed.
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
        self.labels: set[str] | None = set()

    async def ask(self, method: str, path: str, *, body: Manifest | None = None) -> Manifest:
        if not self.is_reachable:
            raise KubernetesError("the API server does not answer: connection refused")
        if body is not None:
            asked = body["spec"]["resourceAttributes"]
            return {
                "status": {"allowed": f"{asked['verb']} {asked['resource']}" not in self.forbidden}
            }
        if path.startswith(LABELS) and self.labels is not None:
            matched = unquote_plus(path.removeprefix(LABELS)).split("&")[0] in self.labels
            return {"items": [{}] if matched else []}
        answer: Mapping[str, Any] | None = self.answers.get(path)
        if answer is None:
            raise RefusedError(f"{method} {path}: not found", status=404)
        return answer


def deployment(
    *,
    available: int = 1,
    name: str = "balanced-source",
    selector: str = "",
    namespaces: str = "",
    lease: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The operator's Deployment."""
    environment = [
        {"name": "BALANCED_SOURCE_IDENTITY", "valueFrom": {}},
        {"name": "BALANCED_SOURCE_NAMESPACES", "value": namespaces},
    ]
    if selector:
        environment += [{"name": "BALANCED_SOURCE_NAMESPACE_SELECTOR", "value": selector}]
    if lease is not None:
        environment += [{"name": "BALANCED_SOURCE_LEASE_NAMESPACE", **lease}]
    containers = [{"name": "operator", "env": environment}, {"name": "beside"}]
    pod = {"serviceAccountName": "operator", "containers": containers}
    return {
        "metadata": {"namespace": "system", "name": name},
        "spec": {"template": {"spec": pod}},
        "status": {"availableReplicas": available},
    }
