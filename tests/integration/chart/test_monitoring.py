"""Monitors and alerts that the chart makes; no cluster."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from balanced_source_operator.resources.kinds import NAME_LABEL
from balanced_source_operator.resources.pod_templates import METRICS_PORT_NAME
from support.chart.documents import one
from testbed.errors import CommandError
from testbed.versions import CHECKOUT

pytestmark = pytest.mark.integration
Render = Callable[..., list[dict[str, Any]]]


def test_alerts_have_runbooks_and_can_be_left_out(render: Render) -> None:
    rule = {
        "enabled": True,
        "runbookUrl": "https://example.org/runbooks/",
        "disabled": ["BalancedSourceDegraded"],
    }
    rules = one(render(metrics={"prometheusRule": rule}), "PrometheusRule")["spec"]["groups"][0][
        "rules"
    ]
    names = [rule["alert"] for rule in rules]
    assert "BalancedSourceNotReady" in names
    assert "BalancedSourceDegraded" not in names
    assert rules[0]["annotations"]["runbook_url"] == f"https://example.org/runbooks/{names[0]}.md"
    site = render(
        documentationUrl="https://example.org/bs/", metrics={"prometheusRule": {"enabled": True}}
    )
    for rule in one(site, "PrometheusRule")["spec"]["groups"][0]["rules"]:
        address = rule["annotations"]["runbook_url"]
        assert address == f"https://example.org/bs/runbooks/{rule['alert']}/"
    variables = {"name": "BALANCED_SOURCE_DOCUMENTATION_URL", "value": "https://example.org/bs/"}
    assert variables in one(site, "Deployment")["spec"]["template"]["spec"]["containers"][0]["env"]
    plain = one(render(metrics={"prometheusRule": {"enabled": True}}), "PrometheusRule")["spec"][
        "groups"
    ][0]["rules"]
    assert all((CHECKOUT / rule["annotations"]["runbook"]).is_file() for rule in plain)


def test_how_long_a_state_lasts_before_an_alert_and_its_labels_can_be_set(render: Render) -> None:
    def rules(**more: Any) -> dict[str, Any]:
        made = one(render(metrics={"prometheusRule": {"enabled": True, **more}}), "PrometheusRule")
        return {rule["alert"]: rule for rule in made["spec"]["groups"][0]["rules"]}

    usual = rules()
    chosen = rules(
        overrides={
            "BalancedSourceDegraded": {"for": "1h30m", "labels": {"severity": "critical"}},
            "BalancedSourceDataLoss": {"labels": {"team": "a"}},
        }
    )

    assert chosen.pop("BalancedSourceDegraded") == {
        **usual.pop("BalancedSourceDegraded"),
        "for": "1h30m",
        "labels": {"severity": "critical"},
    }
    loss = usual.pop("BalancedSourceDataLoss")
    assert "for" not in loss
    assert chosen.pop("BalancedSourceDataLoss") == {
        **loss,
        "labels": {"severity": "critical", "team": "a"},
    }
    assert chosen == usual


def test_alerts_ask_for_the_series_of_one_cluster(render: Render) -> None:
    rule = {"enabled": True, "matchLabels": {"cluster": "prod-1", "env": "live"}}
    made = one(render(metrics={"prometheusRule": rule}), "PrometheusRule")

    asked = {rule["alert"]: rule["expr"] for rule in made["spec"]["groups"][0]["rules"]}
    of_cluster = 'cluster="prod-1",env="live"'
    assert asked["BalancedSourceOperatorDown"] == (
        f"absent(balanced_source_leader{{{of_cluster}}} == 1)"
    )
    for expr in asked.values():
        metrics = re.findall(r"balanced_source_\w+", expr)
        assert metrics
        assert expr.count(of_cluster) == len(metrics)
    assert (
        f'balanced_source_condition{{{of_cluster},type="Ready"}}) == 0'
        in (asked["BalancedSourceNotReady"])
    )
    with pytest.raises(CommandError, match="invalid propertyName"):
        render(metrics={"prometheusRule": {"enabled": True, "matchLabels": {"a-b": "c"}}})


WITHOUT = "without (container, endpoint, instance, node, pod)"


@pytest.mark.parametrize(
    ("limits", "expr"),
    [
        ({"records": 5_000_000}, f"max {WITHOUT} (balanced_source_lag_records) > 5000000"),
        ({"seconds": 600}, f"max {WITHOUT} (balanced_source_behind_seconds) > 600"),
        (
            {"records": 7, "seconds": 600},
            (
                f"max {WITHOUT} (balanced_source_lag_records) > 7"
                f" or max {WITHOUT} (balanced_source_behind_seconds) > 600"
            ),
        ),
        ({}, None),
    ],
)
def test_a_high_lag_is_an_alert_only_with_a_limit(
    render: Render, limits: dict[str, int], expr: str | None
) -> None:
    rule = {"enabled": True, "lagHigh": limits}
    made = one(render(metrics={"prometheusRule": rule}), "PrometheusRule")
    exprs = {rule["alert"]: rule["expr"] for rule in made["spec"]["groups"][0]["rules"]}

    assert exprs.get("BalancedSourceLagHigh") == expr
    assert "BalancedSourceLagGrowing" in exprs


@pytest.mark.parametrize("more", [{"disabled": ["Degraded"]}, {"overrides": {"Degraded": {}}}])
def test_an_alert_that_does_not_exist_is_refused(render: Render, more: dict[str, Any]) -> None:
    with pytest.raises(CommandError, match="there is no alert Degraded; the alerts are Balanced"):
        render(metrics={"prometheusRule": {"enabled": True, **more}})


@pytest.mark.parametrize("kind", ["serviceMonitor", "podMonitor"])
def test_alerts_need_the_namespaces_of_sources(render: Render, kind: str) -> None:
    monitor: dict[str, Any] = {"enabled": True, "honorLabels": False}
    render(metrics={kind: monitor})
    rule = {"enabled": True}
    with pytest.raises(CommandError, match=rf"prometheusRule needs metrics\.{kind}\.honorLabels"):
        render(metrics={kind: monitor, "prometheusRule": rule})

    restored = {"sourceLabels": ["exported_namespace"], "targetLabel": "namespace"}
    render(metrics={kind: {**monitor, "metricRelabelings": [restored]}, "prometheusRule": rule})
    render(metrics={kind: {"enabled": True}, "prometheusRule": rule})
    drivers = {"podMonitor": monitor}
    render(metrics={kind: {"enabled": True}, "drivers": drivers, "prometheusRule": rule})


@pytest.mark.parametrize(
    ("kind", "key"), [("serviceMonitor", "endpoints"), ("podMonitor", "podMetricsEndpoints")]
)
def test_monitors_have_their_options(render: Render, kind: str, key: str) -> None:
    relabeling = [{"action": "labeldrop", "regex": "pod"}]
    options = {"scrapeTimeout": "5s", "annotations": {"a": "b"}, "relabelings": relabeling}
    monitor = one(render(metrics={kind: {"enabled": True, **options}}), kind[0].upper() + kind[1:])
    assert monitor["metadata"]["annotations"] == {"a": "b"}
    (endpoint,) = monitor["spec"][key]
    assert endpoint["honorLabels"] is True, "a source's namespace is not that of the operator's pod"
    assert endpoint["scrapeTimeout"] == "5s"
    assert endpoint["relabelings"] == relabeling
    assert "metricRelabelings" not in endpoint


def test_monitors_and_alerts_go_where_prometheus_looks(render: Render) -> None:
    there = {"enabled": True, "namespace": "monitoring"}
    metrics = {
        "podMonitor": there,
        "drivers": {"podMonitor": there},
        "prometheusRule": there,
    }
    made = render(metrics=metrics, watchNamespaces=["jobs"])
    monitors = {one["metadata"]["name"]: one for one in made if one["kind"] == "PodMonitor"}

    assert {one["metadata"]["namespace"] for one in monitors.values()} == {"monitoring"}
    assert one(made, "PrometheusRule")["metadata"]["namespace"] == "monitoring"
    operator = one(made, "Deployment")["metadata"]["namespace"]
    selected = {name: one["spec"]["namespaceSelector"] for name, one in monitors.items()}
    assert [selector["matchNames"] for _, selector in sorted(selected.items())] == [
        [operator],
        ["jobs"],
    ]


def test_drivers_serve_metrics_by_default_and_a_pod_monitor_finds_them(render: Render) -> None:
    operator = one(render(), "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert {"name": "BALANCED_SOURCE_DRIVER_METRICS_PORT", "value": "8090"} in operator["env"]
    assert "PodMonitor" not in {document["kind"] for document in render()}

    options = {"enabled": True, "scrapeTimeout": "5s", "labels": {"release": "prometheus"}}
    drivers = {"metrics": {"drivers": {"podMonitor": options}}}
    monitor = one(render(**drivers), "PodMonitor")

    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["namespaceSelector"] == {"any": True}
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["scrapeTimeout"]) == (METRICS_PORT_NAME, "5s")
    assert endpoint["honorLabels"] is True
    selector = monitor["spec"]["selector"]
    assert selector["matchLabels"] == {"spark-role": "driver"}
    assert selector["matchExpressions"] == [{"key": NAME_LABEL, "operator": "Exists"}]

    some = one(render(**drivers, watchNamespaces=["jobs", "more"]), "PodMonitor")
    assert some["spec"]["namespaceSelector"] == {"matchNames": ["jobs", "more"]}
