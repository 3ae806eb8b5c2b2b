"""Values that platform teams know from other charts reach their objects; no cluster."""

from collections.abc import Callable
from typing import Any

import pytest

from support.chart.documents import one
from support.chart.values import EVERYTHING, SAMPLES
from testbed.errors import CommandError

pytestmark = pytest.mark.integration
Render = Callable[..., list[dict[str, Any]]]
NAME = "demo-balanced-source"
ANNOTATION = {"example.org/owner": "data"}
POD_VALUES: dict[str, Any] = {
    "runtimeClassName": "gvisor",
    "hostAliases": [{"ip": "10.0.0.7", "hostnames": ["broker-1.example.org"]}],
    "dnsPolicy": "None",
    "dnsConfig": {
        "nameservers": ["10.0.0.10"],
        "searches": ["example.org"],
        "options": [{"name": "ndots", "value": "1"}, {"name": "edns0"}],
    },
}
SERVICE_VALUES: dict[str, Any] = {
    "type": "LoadBalancer",
    "labels": {"tier": "inside"},
    "annotations": {"example.org/lb": "internal"},
}


def pod_of(documents: list[dict[str, Any]]) -> dict[str, Any]:
    return dict(one(documents, "Deployment")["spec"]["template"]["spec"])


def test_fields_of_the_pod(render: Render) -> None:
    documents = render(**POD_VALUES)
    pod = pod_of(documents)
    assert {name: pod.get(name) for name in POD_VALUES} == POD_VALUES
    test = one(documents, "Pod")["spec"]
    assert test["runtimeClassName"] == "gvisor", "the test may run where the operator may"
    assert not pod_of(render()).keys() & POD_VALUES.keys()


@pytest.mark.parametrize("limit", [0, 3])
def test_former_versions_of_the_deployment(render: Render, limit: int) -> None:
    spec = one(render(revisionHistoryLimit=limit), "Deployment")["spec"]
    assert spec["revisionHistoryLimit"] == limit


def test_kubernetes_decides_how_many_former_versions_stay(render: Render) -> None:
    assert "revisionHistoryLimit" not in one(render(), "Deployment")["spec"]


def test_common_annotations_are_those_of_everything_but_pods(render: Render) -> None:
    policies = {"documents", "applications", "namespaces"}
    on = {
        "metrics": EVERYTHING["metrics"] | {"prometheusRule": {"enabled": True}},
        "admissionPolicies": {name: {"enabled": True} for name in policies},
    }
    documents = render(**{**EVERYTHING, **on})
    of_release = [d for d in documents if "helm.sh/hook" not in annotations_of(d)]
    assert len(of_release) > 20
    assert [
        d["kind"] for d in of_release if not annotations_of(d).items() >= ANNOTATION.items()
    ] == []
    pod = one(documents, "Deployment")["spec"]["template"]["metadata"]
    assert pod["annotations"] == {"a": "b"}, "that would restart the operator"


def annotations_of(document: dict[str, Any]) -> dict[str, str]:
    return dict(document["metadata"].get("annotations", {}))


def test_what_must_stay_keeps_its_policy_beside_common_annotations(render: Render) -> None:
    documents = render(commonAnnotations=ANNOTATION, spark={"jobNamespaces": ["jobs"]})
    for kind, name in (
        ("CustomResourceDefinition", ""),
        ("ServiceAccount", "spark"),
        ("Role", f"{NAME}-spark"),
        ("RoleBinding", f"{NAME}-spark"),
    ):
        kept = {**ANNOTATION, "helm.sh/resource-policy": "keep"}
        assert annotations_of(one(documents, kind, name)).items() >= kept.items()


def test_annotations_of_an_object_win_over_common_ones(render: Render) -> None:
    own = {"example.org/owner": "platform"}
    documents = render(
        commonAnnotations=ANNOTATION,
        deploymentAnnotations=own,
        serviceAccount={"annotations": own},
        metrics={"service": {"enabled": True, "annotations": own}},
    )
    for kind, name in (("Deployment", ""), ("Service", ""), ("ServiceAccount", NAME)):
        assert annotations_of(one(documents, kind, name)) == own


def test_labels_of_the_service_account(render: Render) -> None:
    account = one(render(serviceAccount={"labels": {"azure": "true"}}), "ServiceAccount", NAME)
    assert account["metadata"]["labels"]["azure"] == "true"
    assert account["metadata"]["labels"]["app.kubernetes.io/instance"] == "demo"


@pytest.mark.parametrize("part", ["metrics", "page"])
def test_services(render: Render, part: str) -> None:
    service = {"enabled": True, **SERVICE_VALUES}
    documents = render(
        **{part: {"service": service, **({"enabled": True} if part == "page" else {})}}
    )
    made = one(documents, "Service", f"{NAME}-{part}")
    assert made["spec"]["type"] == "LoadBalancer"
    assert made["metadata"]["labels"]["tier"] == "inside"
    assert annotations_of(made) == SERVICE_VALUES["annotations"]
    assert "tier" not in made["spec"]["selector"]


@pytest.mark.parametrize(
    ("values", "kind", "name"),
    [
        ({"serviceMonitor": {"enabled": True, **SAMPLES}}, "ServiceMonitor", NAME),
        ({"podMonitor": {"enabled": True, **SAMPLES}}, "PodMonitor", NAME),
        (
            {"drivers": {"podMonitor": {"enabled": True, **SAMPLES}}},
            "PodMonitor",
            f"{NAME}-drivers",
        ),
    ],
)
def test_samples_of_monitors(render: Render, values: dict[str, Any], kind: str, name: str) -> None:
    spec = one(render(metrics=values), kind, name)["spec"]
    assert {field: spec[field] for field in SAMPLES} == SAMPLES
    assert "targetLabels" not in spec


@pytest.mark.parametrize(
    ("path", "kind", "key"),
    [
        (["serviceMonitor"], "ServiceMonitor", "endpoints"),
        (["podMonitor"], "PodMonitor", "podMetricsEndpoints"),
        (["drivers", "podMonitor"], "PodMonitor", "podMetricsEndpoints"),
    ],
)
def test_further_fields_of_endpoints(render: Render, path: list[str], kind: str, key: str) -> None:
    def monitor(**fields: Any) -> dict[str, Any]:
        values: dict[str, Any] = {"enabled": True, "endpointAdditionalProperties": fields}
        for name in reversed(path):
            values = {name: values}
        return values

    further = {"enableHttp2": False, "params": {"a": ["b"]}}
    (endpoint,) = one(render(metrics=monitor(**further)), kind)["spec"][key]
    assert endpoint.items() >= further.items()
    assert endpoint["interval"] == "30s"
    message = f"{'.'.join(path)}.endpointAdditionalProperties must not set interval"
    with pytest.raises(CommandError, match=message):
        render(metrics=monitor(interval="1m"))


def test_labels_of_the_service_for_its_series(render: Render) -> None:
    monitor = {"enabled": True, "targetLabels": ["tier"]}
    spec = one(render(metrics={"serviceMonitor": monitor}), "ServiceMonitor")["spec"]
    assert spec["targetLabels"] == ["tier"]
    assert not spec.keys() & SAMPLES.keys(), "Prometheus decides"


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        ({}, {"minAvailable": 1}),
        ({"minAvailable": 0}, {"minAvailable": 0}),
        ({"minAvailable": "50%"}, {"minAvailable": "50%"}),
        ({"maxUnavailable": 1}, {"maxUnavailable": 1}),
        ({"maxUnavailable": "100%"}, {"maxUnavailable": "100%"}),
    ],
)
def test_the_disruption_budget_has_one_of_two_limits(
    render: Render, budget: dict[str, Any], expected: dict[str, Any]
) -> None:
    spec = one(render(replicas=2, podDisruptionBudget=budget), "PodDisruptionBudget")["spec"]
    del spec["selector"]
    assert spec == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"replicas": 2, "podDisruptionBudget": {"minAvailable": 1, "maxUnavailable": 1}},
            "takes only one of them",
        ),
        ({"replicas": 2, "podDisruptionBudget": {"maxUnavailable": 0}}, "maxUnavailable is 0: no"),
        (
            {"replicas": 2, "podDisruptionBudget": {"maxUnavailable": "0%"}},
            "maxUnavailable is 0%: no node could ever be drained",
        ),
        ({"podDisruptionBudget": {"maxUnavailable": "all"}}, "maxUnavailable"),
        ({"dnsPolicy": "None"}, "dnsPolicy None needs dnsConfig.nameservers"),
        ({"dnsPolicy": "Cluster"}, "dnsPolicy"),
        ({"dnsConfig": {"servers": []}}, "servers"),
        ({"hostAliases": [{"ip": "10.0.0.7"}]}, "hostnames"),
        ({"runtimeClassName": "G Visor"}, "runtimeClassName"),
        ({"revisionHistoryLimit": -1}, "revisionHistoryLimit"),
        (
            {"commonAnnotations": {"helm.sh/resource-policy": "keep"}},
            "commonAnnotations must not set helm.sh/resource-policy",
        ),
        ({"commonAnnotations": {"a": 1}}, "commonAnnotations"),
        ({"deploymentAnnotations": {"a": True}}, "deploymentAnnotations"),
        ({"serviceAccount": {"labels": {"a": 1}}}, "labels"),
        ({"metrics": {"service": {"type": "ExternalName"}}}, "type"),
        ({"page": {"service": {"annotations": ["a"]}}}, "annotations"),
        (
            {"metrics": {"service": {"labels": {"app.kubernetes.io/name": "x"}}}},
            "the ServiceMonitor selects the Service by this label",
        ),
        ({"metrics": {"serviceMonitor": {"sampleLimit": 0}}}, "sampleLimit"),
        ({"metrics": {"podMonitor": {"targetLabels": ["a"]}}}, "targetLabels"),
        ({"metrics": {"drivers": {"podMonitor": {"podTargetLabels": "a"}}}}, "podTargetLabels"),
        ({"metrics": {"podMonitor": {"jobLabel": ["a"]}}}, "jobLabel"),
    ],
)
def test_wrong_values_are_refused(render: Render, values: dict[str, Any], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        render(**values)
