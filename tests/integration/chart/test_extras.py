"""What values add to the chart's objects: registries, containers, labels, objects; no cluster.

The subchart of an umbrella chart gets the same values, and `global` besides.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from balanced_source_operator.doctor.cluster import OPERATOR_SELECTOR
from testbed.errors import CommandError
from testbed.helm import Helm
from testbed.versions import OURS

pytestmark = pytest.mark.integration
Render = Callable[..., list[dict[str, Any]]]
SELECTOR = {
    "app.kubernetes.io/name": "balanced-source",
    "app.kubernetes.io/instance": "demo",
}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
}


def pod_of(documents: list[dict[str, Any]]) -> dict[str, Any]:
    [deployment] = [d for d in documents if d["kind"] == "Deployment"]
    return dict(deployment["spec"]["template"]["spec"])


def operator_of(documents: list[dict[str, Any]]) -> dict[str, Any]:
    return dict(pod_of(documents)["containers"][0])


def images(documents: list[dict[str, Any]]) -> set[str]:
    """Return the images of all pods: the operator's, and that of the chart's test."""
    pods = [pod_of(documents), *(d["spec"] for d in documents if d["kind"] == "Pod")]
    return {container["image"] for pod in pods for container in pod["containers"]}


@pytest.mark.parametrize(
    ("values", "image"),
    [
        ({}, f"registry.example.org/balanced-source/operator:{OURS}"),
        (
            {"image": {"registry": "mirror.test:5000"}},
            f"mirror.test:5000/balanced-source/operator:{OURS}",
        ),
        (
            {"global": {"imageRegistry": "mirror.test/hub/"}},
            f"mirror.test/hub/balanced-source/operator:{OURS}",
        ),
        (
            {"image": {"registry": "own.test"}, "global": {"imageRegistry": "mirror.test"}},
            f"own.test/balanced-source/operator:{OURS}",
        ),
        (
            {"image": {"repository": "team/operator"}, "global": {"imageRegistry": "mirror.test"}},
            f"mirror.test/team/operator:{OURS}",
        ),
        ({"image": {"repository": "localhost/operator", "tag": "dev"}}, "localhost/operator:dev"),
        (
            {"image": {"repository": "operator", "registry": "own.test"}},
            f"own.test/operator:{OURS}",
        ),
    ],
)
def test_the_registry_can_be_replaced(render: Render, values: dict[str, Any], image: str) -> None:
    assert images(render(**values)) == {image}


def test_pull_secrets_are_those_of_the_chart_and_the_global_ones(render: Render) -> None:
    both = {
        "image": {"pullSecrets": [{"name": "own"}]},
        "global": {"imagePullSecrets": [{"name": "all"}, {"name": "own"}]},
    }
    documents = render(**both)
    pods = [pod_of(documents), *(d["spec"] for d in documents if d["kind"] == "Pod")]
    assert [pod["imagePullSecrets"] for pod in pods] == [[{"name": "own"}, {"name": "all"}]] * 2
    assert "imagePullSecrets" not in pod_of(render())


def test_containers_and_arguments_are_added(render: Render) -> None:
    documents = render(
        extraArgs=["--verbose"],
        initContainers=[{"name": "wait", "image": "busybox"}],
        extraContainers=[{"name": "proxy", "image": "envoy"}],
    )
    pod = pod_of(documents)
    assert [container["name"] for container in pod["initContainers"]] == ["wait"]
    assert [container["name"] for container in pod["containers"]] == ["operator", "proxy"]
    assert pod["containers"][0]["args"] == ["operator", "--verbose"]
    assert [volume["name"] for volume in pod["volumes"]] == ["tmp"]


def test_further_objects_may_use_templates(render: Render) -> None:
    as_object = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "{{ .Release.Name }}-a", "namespace": "{{ .Release.Namespace }}"},
    }
    name = '{{ include "balanced-source.fullname" . }}-b'
    as_text = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\n"
    found = [d for d in render(extraObjects=[as_object, as_text]) if d["kind"] == "Secret"]
    assert [d["metadata"]["name"] for d in found] == ["demo-a", "demo-balanced-source-b"]
    assert found[0]["metadata"]["namespace"] == "system"


def test_pods_are_spread_by_the_selector_of_the_deployment(render: Render) -> None:
    own = {"matchLabels": {"team": "data"}}
    pod = pod_of(render(topologySpreadConstraints=[SPREAD, {**SPREAD, "labelSelector": own}]))
    selectors = [one["labelSelector"] for one in pod["topologySpreadConstraints"]]
    assert selectors == [{"matchLabels": SELECTOR}, own]
    assert pod["topologySpreadConstraints"][0]["maxSkew"] == 1


@pytest.mark.parametrize(
    "values",
    [
        {"metrics": {"serviceMonitor": {"enabled": True, "labels": {"team": "more"}}}},
        {"metrics": {"podMonitor": {"enabled": True, "labels": {"team": "more"}}}},
        {"metrics": {"drivers": {"podMonitor": {"enabled": True, "labels": {"team": "more"}}}}},
        {"metrics": {"prometheusRule": {"enabled": True, "labels": {"team": "more"}}}},
        {"metrics": {"dashboards": {"enabled": True, "labels": {"team": "more"}}}},
    ],
)
def test_labels_of_an_object_win_over_common_ones(
    helm: Helm, chart: Path, values: dict[str, Any]
) -> None:
    """Twice the same key is invalid YAML, which not every tool notices."""
    file = helm.values("labels", {"commonLabels": {"team": "all"}, **values})
    text = helm("template", "demo", chart, "--values", file)
    labelled = [part for part in text.split("\n---\n") if "team: more" in part]
    assert labelled
    assert not [part for part in labelled if "team: all" in part]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"extraEnv": [{"name": "BALANCED_SOURCE_NAMESPACES"}]}, "must not set BALANCED_SOURCE_NA"),
        (
            {"extraEnv": [{"name": "BALANCED_SOURCE_RESYNC_SECONDS"}]},
            "must not set BALANCED_SOURCE_RESYNC_SECONDS",
        ),
        ({"extraVolumes": [{"name": "tmp"}]}, "extraVolumes must not use the name tmp"),
        ({"extraVolumes": [{"name": "a"}, {"name": "a"}]}, "extraVolumes must not use the name a"),
        ({"initContainers": [{"name": "operator"}]}, "initContainers must not use the name oper"),
        ({"extraContainers": [{"name": "operator"}]}, "extraContainers must not use the name op"),
        (
            {"extraVolumeMounts": [{"name": "a", "mountPath": "/tmp/"}]},  # noqa: S108
            "the chart mounts a volume there",
        ),
        (
            {"replicas": 2, "podDisruptionBudget": {"minAvailable": "51%"}},
            "no node could ever be drained",
        ),
        ({"podDisruptionBudget": {"minAvailable": "half"}}, "minAvailable"),
        ({"podDisruptionBudget": {"minAvailable": -1}}, "minAvailable"),
        (
            {"admissionPolicies": {"namespaces": {"enabled": True}}},
            "admissionPolicies.namespaces needs watchNamespaces",
        ),
        ({"admissionPolicies": {"actions": []}}, "actions"),
        (
            {"watchNamespaceSelector": "shard=a", "watchNamespaces": ["jobs"]},
            r"watchNamespaceSelector \(shard=a\) cannot be combined with watchNamespaces \(jobs\)",
        ),
        (
            {
                "watchNamespaceSelector": "shard=a",
                "admissionPolicies": {"namespaces": {"enabled": True}},
            },
            "the policy would forbid sources in namespaces of other releases",
        ),
        (
            {"extraEnv": [{"name": "BALANCED_SOURCE_NAMESPACE_SELECTOR"}]},
            "must not set BALANCED_SOURCE_NAMESPACE_SELECTOR",
        ),
    ],
)
def test_additions_that_collide_are_refused(
    render: Render, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        render(**values)


def test_policies_need_a_kubernetes_that_has_them(helm: Helm, chart: Path) -> None:
    file = helm.values("policies", {"admissionPolicies": {"documents": {"enabled": True}}})
    with pytest.raises(CommandError, match=r"need Kubernetes 1.30 or newer, and this is v1.29"):
        helm("template", "demo", chart, "--values", file, "--kube-version", "1.29.3")
    assert "Policy" in helm("template", "demo", chart, "--values", file, "--kube-version", "1.30.0")


def test_there_is_no_policy_by_default(render: Render) -> None:
    assert not [d for d in render() if "AdmissionPolicy" in d["kind"]]


def test_an_umbrella_chart_can_include_it(helm: Helm, chart: Path, tmp_path: Path) -> None:
    parent = tmp_path / "platform"
    (parent / "charts").mkdir(parents=True)
    (parent / "charts" / "balanced-source").symlink_to(chart)
    (parent / "Chart.yaml").write_text(
        "apiVersion: v2\nname: platform\nversion: 0.0.1\ndependencies:\n"
        f"- {{name: balanced-source, version: {OURS}, condition: balanced-source.enabled}}\n"
    )
    values = {
        "global": {"imageRegistry": "mirror.test", "other": 1},
        "balanced-source": {"replicas": 2, "enabled": True},
    }
    text = helm("template", "demo", parent, "--values", helm.values("umbrella", values))
    documents = [document for document in yaml.safe_load_all(text) if document]
    assert images(documents) == {f"mirror.test/balanced-source/operator:{OURS}"}

    values["balanced-source"]["enabled"] = False
    assert not helm("template", "demo", parent, "--values", helm.values("without", values)).strip()


def test_the_test_pod_goes_to_the_nodes_of_the_operator(render: Render) -> None:
    places = {
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "pool", "operator": "Exists"}],
    }
    documents = render(**places)
    [test] = [d["spec"] for d in documents if d["kind"] == "Pod"]
    for spec in (test, pod_of(documents)):
        assert {name: spec[name] for name in places} == places


@pytest.mark.parametrize(
    ("program", "policy"),
    [("helm", "before-hook-creation"), ("helm4", "before-hook-creation,hook-succeeded")],
)
def test_the_test_pod_goes_where_helm_reads_its_log_before(
    chart: Path, tmp_path: Path, program: str, policy: str
) -> None:
    text = Helm(tmp_path, program=program)("template", "demo", chart)
    [pod] = [d for d in yaml.safe_load_all(text) if d and d["kind"] == "Pod"]
    assert pod["metadata"]["annotations"]["helm.sh/hook-delete-policy"] == policy


def test_doctor_finds_the_operator_whatever_its_name(render: Render) -> None:
    [deployment] = [d for d in render(nameOverride="streams") if d["kind"] == "Deployment"]
    key, value = OPERATOR_SELECTOR.split("=")
    for metadata in (deployment["metadata"], deployment["spec"]["template"]["metadata"]):
        assert metadata["labels"][key] == value
    assert key not in deployment["spec"]["selector"]["matchLabels"], "an upgrade cannot change it"


def test_the_lease_belongs_to_the_release(render: Render) -> None:
    [lease] = [d for d in render() if d["kind"] == "Lease"]
    assert lease["metadata"]["name"] == "balanced-source-operator"
    assert "spec" not in lease, "an upgrade must not touch the holder"
    assert not [d for d in render(leaderElection={"enabled": False}) if d["kind"] == "Lease"]
