"""What the chart makes of its values; no cluster."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from balanced_source_operator.kube import rights
from balanced_source_operator.settings import settings_from
from support.chart.documents import one
from support.chart.values import EVERYTHING
from support.selectors import INVALID, VALID
from testbed.errors import CommandError
from testbed.helm import Helm
from testbed.versions import CHECKOUT

pytestmark = pytest.mark.integration
NAME = "demo-balanced-source"
CRD = CHECKOUT / "crds" / "balancedsource.io_balancedsources.yaml"
Render = Callable[..., list[dict[str, Any]]]


def kinds(documents: list[dict[str, Any]]) -> set[str]:
    return {document["kind"] for document in documents}


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_lint_finds_nothing(helm: Helm, chart: Path, values: dict[str, Any]) -> None:
    helm("lint", "--strict", chart, "--values", helm.values("lint", values))


def test_the_definition_is_the_one_of_the_checkout(render: Render, chart: Path) -> None:
    assert (chart / "files" / CRD.name).read_bytes() == CRD.read_bytes(), (
        "copy crds/ to charts/balanced-source/files/"
    )
    definition = one(render(), "CustomResourceDefinition")
    version = yaml.safe_load((chart / "Chart.yaml").read_text())["version"]
    assert definition["metadata"].pop("annotations") == {
        "balancedsource.io/crd-version": version,
        "helm.sh/resource-policy": "keep",
    }
    assert definition["metadata"].pop("labels")
    assert definition == yaml.safe_load(CRD.read_text())


def test_the_definition_can_be_left_to_others_or_go_with_the_release(render: Render) -> None:
    assert "CustomResourceDefinition" not in kinds(render(crds={"install": False}))
    leaving = one(render(crds={"keep": False}), "CustomResourceDefinition")["metadata"]
    assert list(leaving["annotations"]) == ["balancedsource.io/crd-version"]


def test_the_pod_is_restricted(render: Render) -> None:
    pod = one(render(), "Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["enableServiceLinks"] is False
    security = pod["containers"][0]["securityContext"]
    assert security == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def test_settings_reach_the_operator(render: Render) -> None:
    container = one(render(**EVERYTHING), "Deployment")["spec"]["template"]["spec"]["containers"][0]
    variables = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert variables["BALANCED_SOURCE_NAMESPACES"] == "jobs,more-jobs"
    assert variables["BALANCED_SOURCE_INSTANCE"] == "system/demo-balanced-source"
    assert variables["BALANCED_SOURCE_SPARK_CONF"] == '{"spark.ui.enabled":"false"}'
    assert variables["BALANCED_SOURCE_RESYNC_SECONDS"] == "10"
    assert variables["BALANCED_SOURCE_SAVE_INTERVAL_SECONDS"] == "1.5"
    assert "BALANCED_SOURCE_STUCK_AFTER_SECONDS" not in variables
    assert "BALANCED_SOURCE_LEASE_NAMESPACE" in variables
    assert container["args"] == ["operator", "--debug"]
    assert container["image"].endswith("@sha256:" + "0" * 64)


def test_named_namespaces_need_no_right_on_the_cluster(render: Render) -> None:
    documents = render(watchNamespaces=["jobs"])
    assert "ClusterRoleBinding" not in kinds(documents)
    role = one(documents, "Role", "demo-balanced-source")
    assert role["metadata"]["namespace"] == "jobs"
    everywhere = one(render(), "ClusterRole", "demo-balanced-source")
    more = [rule for rule in everywhere["rules"] if rule not in role["rules"]]
    assert [rule["resources"] for rule in more] == [["customresourcedefinitions"]]


@pytest.mark.parametrize("selector", VALID)
def test_namespaces_by_label_need_the_right_to_follow_them(render: Render, selector: str) -> None:
    documents = render(watchNamespaceSelector=selector)
    container = one(documents, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    variables = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert settings_from(variables).namespace_selector == selector
    role = one(documents, "ClusterRole", "demo-balanced-source")["rules"]
    more = [rule for rule in role if rule not in one(render(), "ClusterRole", NAME)["rules"]]
    assert more == [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]}]


@pytest.mark.parametrize("selector", INVALID)
def test_a_wrong_selector_is_refused_as_by_the_operator(render: Render, selector: str) -> None:
    with pytest.raises(CommandError, match="watchNamespaceSelector"):
        render(watchNamespaceSelector=selector)


@pytest.mark.parametrize("selector", ["", None])
def test_without_a_selector_labels_do_not_matter(render: Render, selector: str | None) -> None:
    assert render(watchNamespaceSelector=selector) == render()
    assert "NAMESPACE_SELECTOR" not in str(render())


@pytest.mark.parametrize(
    "served", [{"watchNamespaceSelector": "shard=a"}, {"watchNamespaces": ["shop"]}]
)
def test_a_release_beside_others_misses_its_own_leader(
    render: Render, served: dict[str, Any]
) -> None:
    def absent(**values: Any) -> list[str]:
        metrics = {"prometheusRule": {"enabled": True}}
        groups = one(render(metrics=metrics, **values), "PrometheusRule")["spec"]["groups"]
        return [rule["expr"] for rule in groups[0]["rules"] if "absent" in rule["expr"]]

    assert absent() == ["absent(balanced_source_leader == 1)"]
    assert absent(**served) == ['absent(balanced_source_leader{namespace="system"} == 1)']


def test_a_selector_may_be_given_on_the_command_line(helm: Helm, chart: Path) -> None:
    """As docs/scale.md does."""
    for given, selector in (
        ("balancedsource.io/shard=a", "balancedsource.io/shard=a"),
        (r"balancedsource.io/shard notin (a\,b)", "balancedsource.io/shard notin (a,b)"),
    ):
        text = helm("template", "demo", chart, "--set", f"watchNamespaceSelector={given}")
        container = one([d for d in yaml.safe_load_all(text) if d], "Deployment")
        assert {"name": "BALANCED_SOURCE_NAMESPACE_SELECTOR", "value": selector} in container[
            "spec"
        ]["template"]["spec"]["containers"][0]["env"]


def test_two_releases_share_no_name_but_that_of_the_definition(helm: Helm, chart: Path) -> None:
    """Helm refuses an object that another release has made."""
    found = list[set[tuple[str, str, str]]]()
    for name in ("shard-a", "shard-b"):
        text = helm(
            "template",
            name,
            chart,
            "--namespace",
            name,
            "--set",
            f"page.enabled=true,watchNamespaceSelector=shard={name}",
        )
        objects = [d for d in yaml.safe_load_all(text) if d]
        metadata = [(d["kind"], d["metadata"]) for d in objects]
        found.append({(kind, m.get("namespace", ""), m["name"]) for kind, m in metadata})
    assert {kind for kind, _, _ in found[0] & found[1]} == {"CustomResourceDefinition"}


def test_without_the_page_there_is_nothing_of_it(render: Render) -> None:
    assert "page" not in str(
        render(page={"service": {"enabled": True}, "tokenSecret": {"name": "page"}})
    )


def test_the_page_asks_the_api_server_unless_it_has_a_token(render: Render) -> None:
    documents = render(page={"enabled": True}, watchNamespaces=["jobs"])
    rules = one(documents, "ClusterRole", "demo-balanced-source-page")["rules"]
    assert [(rule["resources"], rule["verbs"]) for rule in rules] == [
        (["tokenreviews"], ["create"]),
        (["subjectaccessreviews"], ["create"]),
    ]
    assert page_variables(documents) == {"PORT": "8082", "HOST": "127.0.0.1"}
    assert "Service" not in kinds(documents)

    with_token = render(**EVERYTHING)
    assert "demo-balanced-source-page" not in [
        d["metadata"]["name"] for d in with_token if d["kind"] == "ClusterRole"
    ]
    assert page_variables(with_token) == {
        "PORT": "8082",
        "HOST": "0.0.0.0",  # noqa: S104 - for its Service
        "TOKEN_FILE": "/etc/balanced-source/page/token",
    }
    assert (
        one(with_token, "Service", "demo-balanced-source-page")["spec"]["ports"][0]["targetPort"]
        == "page"
    )
    ingress = one(with_token, "NetworkPolicy")["spec"]["ingress"]
    assert {"ports": [{"port": 8082}], "from": [{"podSelector": {}}]} in ingress


def page_variables(documents: list[dict[str, Any]]) -> dict[str, str]:
    container = one(documents, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    prefix = "BALANCED_SOURCE_PAGE_"
    return {
        e["name"].removeprefix(prefix): e["value"]
        for e in container["env"]
        if e["name"].startswith(prefix)
    }


def test_drivers_may_only_create_config_maps_and_only_if_asked_for(render: Render) -> None:
    for spark, verbs in (({}, []), ({"executorConfigMaps": True}, ["create"])):
        rules = one(
            render(spark={"jobNamespaces": ["jobs"], **spark}), "Role", "demo-balanced-source-spark"
        )["rules"]
        assert [
            verb for rule in rules if "configmaps" in rule["resources"] for verb in rule["verbs"]
        ] == verbs


def test_everything_can_be_on_at_once(render: Render) -> None:
    documents = render(**EVERYTHING)
    assert {"Service", "ServiceMonitor", "NetworkPolicy", "PodDisruptionBudget"} <= kinds(documents)
    assert one(documents, "ServiceAccount", "spark")["metadata"]["namespace"] == "jobs"
    pod_monitor = render(metrics={"podMonitor": {"enabled": True}})
    assert "podMetricsEndpoints" in one(pod_monitor, "PodMonitor")["spec"]
    assert "PodDisruptionBudget" not in kinds(pod_monitor)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"replicas": 2, "leaderElection": {"enabled": False}},
            "two operators would work on the same sources",
        ),
        (
            {"metrics": {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}}},
            "scraped twice",
        ),
        (
            {"metrics": {"drivers": {"port": 0, "podMonitor": {"enabled": True}}}},
            "drivers serve no metrics without it",
        ),
        ({"serviceAccount": {"create": False}}, "serviceAccount.name must be set"),
        ({"watchNamespace": ["jobs"]}, "watchNamespace"),
        (
            {"crds": {"install": False, "keep": False}},
            "would delete the definition and every BalancedSource",
        ),
        ({"metrics": {"port": 8081}}, "metrics.port and probes.port are both 8081"),
        ({"page": {"enabled": True, "port": 8080}}, "page.port and metrics.port are both 8080"),
        (
            {"fullnameOverride": "n" * 56, "page": {"enabled": True, "service": {"enabled": True}}},
            "at most 55 characters",
        ),
        (
            {"replicas": 2, "podDisruptionBudget": {"minAvailable": 2}},
            "no node could ever be drained",
        ),
        (
            {"replicas": 2, "podDisruptionBudget": {"minAvailable": "100%"}},
            "no node could ever be drained",
        ),
        (
            {"fullnameOverride": "n" * 64},
            "64 characters, and objects named after it would be cut off",
        ),
        (
            {"fullnameOverride": "n" * 56, "metrics": {"service": {"enabled": True}}},
            "at most 55 characters",
        ),
        ({"nameOverride": "n" * 64}, "nameOverride n+ has 64 characters"),
        (
            {"podLabels": {"app.kubernetes.io/name": "x"}},
            "podLabels must not set app.kubernetes.io/name",
        ),
        (
            {"commonLabels": {"app.kubernetes.io/instance": "x"}},
            "the Deployment selects its pods by this label",
        ),
        ({"commonLabels": {"helm.sh/chart": "x"}}, "commonLabels must not set helm.sh/chart"),
        (
            {"commonLabels": {"a": "x"}, "podLabels": {"a": "z"}},
            "commonLabels and podLabels both set a",
        ),
        (
            {"leaderElection": {"enabled": False}, "strategy": {"type": "RollingUpdate"}},
            "the old and the new pod",
        ),
        ({"replicas": "two"}, "replicas"),
        ({"settings": {"resyncSeconds": -1}}, "resyncSeconds"),
    ],
)
def test_wrong_values_are_refused(render: Render, values: dict[str, Any], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        render(**values)


def test_without_election_an_old_pod_ends_before_a_new_one_begins(render: Render) -> None:
    deployment = one(render(leaderElection={"enabled": False}), "Deployment")
    # null removes what the API server added to the former strategy; without it the change is
    # forbidden
    assert deployment["spec"]["strategy"] == {"type": "Recreate", "rollingUpdate": None}


@pytest.mark.parametrize(
    "values",
    [
        {"replicas": 2, "podDisruptionBudget": {"minAvailable": "50%"}},
        {"replicas": 1, "podDisruptionBudget": {"minAvailable": 1}},
        {"replicas": 2, "podDisruptionBudget": {"minAvailable": 9, "enabled": False}},
        {"fullnameOverride": "n" * 63},
        {"fullnameOverride": "n" * 55, "metrics": {"service": {"enabled": True}}},
        {"crds": {"install": False}},
    ],
)
def test_values_at_the_edge_are_accepted(render: Render, values: dict[str, Any]) -> None:
    documents = render(**values)
    assert all(
        len(document["metadata"]["name"]) <= 63
        for document in documents
        if document["kind"] == "Service"
    )


def test_ready_and_alive_are_different_questions(render: Render) -> None:
    container = one(render(), "Deployment")["spec"]["template"]["spec"]["containers"][0]
    paths = {
        probe: container[f"{probe}Probe"]["httpGet"]["path"]
        for probe in ("startup", "liveness", "readiness")
    }
    assert paths == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}


def test_the_operator_looks_for_exactly_the_rights_of_the_chart(render: Render) -> None:
    rules = one(render(watchNamespaces=["jobs"]), "Role", "demo-balanced-source")["rules"]
    granted = {
        (g, r, v)
        for rule in rules
        for g in rule["apiGroups"]
        for r in rule["resources"]
        for v in rule["verbs"]
    }
    needed = {
        (
            right.kind.group,
            "/".join(filter(None, (right.kind.plural, right.subresource))),
            right.verb,
        )
        for right in rights.needed(["jobs"])
    }
    assert granted == needed


def test_the_operator_looks_for_exactly_the_rights_on_its_lease_of_the_chart(
    render: Render,
) -> None:
    rules = one(render(), "Role", "demo-balanced-source-lease")["rules"]
    granted = {
        (g, r, v, name)
        for rule in rules
        for g in rule["apiGroups"]
        for r in rule["resources"]
        for v in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }
    needed = {
        (right.kind.group, right.kind.plural, right.verb, right.name)
        for right in set(rights.needed([], lease_namespace="system")) - set(rights.needed([]))
    }
    assert granted == needed


def test_the_network_policy_lets_the_operator_reach_what_it_needs(render: Render) -> None:
    egress = one(render(networkPolicy={"enabled": True}), "NetworkPolicy")["spec"]["egress"][0][
        "ports"
    ]
    ports = {(entry["port"], entry["protocol"]) for entry in egress}
    assert {
        (53, "UDP"),
        (53, "TCP"),
        (5353, "UDP"),
        (443, "TCP"),
        (6443, "TCP"),
        (9096, "TCP"),
        (9098, "TCP"),
    } <= ports


def test_the_former_name_of_the_ports_of_sources_still_replaces_them(render: Render) -> None:
    def ports(**policy: object) -> set[int]:
        made = one(render(networkPolicy={"enabled": True, **policy}), "NetworkPolicy")
        return {entry["port"] for entry in made["spec"]["egress"][0]["ports"]}

    assert 9092 in ports()
    assert ports(kafkaPorts=[19092]) == ports(sourcePorts=[19092])
    assert 9092 not in ports(kafkaPorts=[])
