"""The chart's dashboards are current, ask for served series, and follow one set of rules."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from balanced_source.reasons import Reason
from balanced_source_operator.controller import conditions
from support.dashboards import DASHBOARDS, FOLDER, palette
from support.dashboards.queries import Target, filled, panels_of, stored, targets_of
from support.served_series import (
    of_driver,
    of_operator,
    registry_of_driver,
    registry_of_operator,
)
from testbed.versions import CHECKOUT

STORED = stored()
TARGETS = [target for name, board in STORED.items() for target in targets_of(name, board)]
PANELS = [(name, panel) for name, board in STORED.items() for panel in panels_of(board)]
RULES = yaml.safe_load((CHECKOUT / "charts/balanced-source/files/alerts.yaml").read_text())
ALERTS = {rule["alert"]: rule for rule in RULES}

SERVED: Mapping[str, frozenset[str]] = {
    **of_operator(),
    # the monitor that scrapes a driver knows its namespace
    **{name: labels | {"namespace"} for name, labels in of_driver().items()},
}
NOT_SHOWN: Mapping[str, str] = {
    r"\w+_created": "the client library adds when it began to count; no one asks for it",
    r"balanced_source_turn_seconds_(sum|count)": "panels show quantiles, which the buckets have",
}
"""Series that no panel has: regular expression of their names → why."""

SELECTOR = re.compile(r"(balanced_source_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)"([^"]*)"')
UNITS = {"short", "s", "percent", "recps", "reqps", "binBps"}
TYPES = {
    conditions.READY,
    conditions.PROGRESSING,
    conditions.DEGRADED,
    conditions.DATA_LOSS,
    conditions.RESTART_PENDING,
    conditions.AUTOSCALING,
}


def named(panels: Iterable[tuple[str, dict[str, Any]]]) -> list[Any]:
    return [pytest.param(p, id=f"{name}: {p['title']}") for name, p in panels]


every_target = pytest.mark.parametrize("target", TARGETS, ids=[t.where for t in TARGETS])
every_panel = pytest.mark.parametrize("panel", named(PANELS))
every_board = pytest.mark.parametrize("name", STORED)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_is_current(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == DASHBOARDS[name](), "run: make generate"


def test_no_other_dashboard_is_stored() -> None:
    assert set(STORED) == set(DASHBOARDS)


@every_target
def test_a_query_asks_for_series_and_labels_that_are_served(target: Target) -> None:
    found = list(selectors(target.expr))
    assert found
    for metric, matchers in found:
        assert metric in SERVED, f"{metric} is not served"
        labels = {label for label, _, _ in matchers}
        assert labels <= SERVED[metric], f"{metric} has no label {labels - SERVED[metric]}"


@pytest.mark.parametrize("registry", [registry_of_operator(), registry_of_driver()])
def test_what_is_compared_has_a_series_of_every_metric(registry: CollectorRegistry) -> None:
    assert [family.name for family in registry.collect() if not family.samples] == []


def test_every_series_that_is_served_is_in_a_panel_or_has_a_reason_not_to_be() -> None:
    missing = SERVED.keys() - metrics_in_panels()
    assert {name for name in missing if not any(re.fullmatch(e, name) for e in NOT_SHOWN)} == set()


@pytest.mark.parametrize("exception", NOT_SHOWN)
def test_what_is_excepted_from_panels_is_served_and_in_none(exception: str) -> None:
    excepted = {name for name in SERVED if re.fullmatch(exception, name)}
    assert excepted
    assert excepted & metrics_in_panels() == set()


@every_target
def test_a_query_groups_by_labels_that_its_series_have(target: Target) -> None:
    labels = set().union(*(SERVED[metric] for metric, _ in selectors(target.expr)))
    groups = re.findall(r"\b(?:by|on) \(([^)]*)\)", target.expr)
    assert {label for group in groups for label in re.split(r",\s*", group)} <= labels


@every_target
def test_the_name_of_a_series_uses_labels_that_the_query_keeps(target: Target) -> None:
    kept = re.search(r"\bby \(([^)]*)\)", target.expr)
    labels = set(re.split(r",\s*", kept[1])) if kept else set()
    assert set(re.findall(r"\{\{(\w+)\}\}", target.legend)) <= labels


@every_target
def test_conditions_and_reasons_are_ones_that_exist(target: Target) -> None:
    reasons = {reason.value for reason in Reason}
    for _, matchers in selectors(target.expr):
        for label, _, value in matchers:
            allowed = {"type": TYPES, "reason": reasons, "bound": {"min", "max"}}.get(label)
            assert allowed is None or set(value.split("|")) <= allowed


@every_target
def test_a_query_about_sources_is_about_the_chosen_ones(target: Target) -> None:
    wanted = {"namespace", "source"} if target.where.startswith("source.json") else {"namespace"}
    if "$" in target.where:  # a variable narrows the choice step by step
        wanted = set()
    for metric, matchers in selectors(target.expr):
        assert wanted & SERVED[metric] <= {label for label, _, _ in matchers}


@every_target
def test_unknown_is_never_shown_as_zero(target: Target) -> None:
    assert "vector(" not in target.expr
    assert "absent(" not in target.expr
    for zero in re.findall(r"\bor 0 \* (.*)", target.expr):
        assert zero.startswith("count(max by (namespace, source) (balanced_source_condition{")


@every_panel
def test_unknown_is_a_gap_in_a_panel(panel: dict[str, Any]) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    if panel["type"] in ("timeseries", "state-timeline"):
        assert not defaults.get("custom", {}).get("spanNulls")
        assert "noValue" not in defaults
    else:  # of this moment: an earlier value would look like the present one
        assert {target["instant"] for target in panel["targets"]} == {True}
        assert defaults["noValue"] not in ("", "0")


@every_panel
def test_rates_follow_the_resolution_of_the_dashboard(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        assert "$__rate_interval" in target["expr"] or "rate(" not in target["expr"]
        assert target["interval"] == "30s"


@every_panel
def test_a_panel_says_what_it_shows_in_a_sentence_and_a_unit(panel: dict[str, Any]) -> None:
    assert panel["description"].endswith(".")
    assert len(panel["description"].split()) > 8
    if panel["type"] == "timeseries":
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS


@every_panel
def test_a_panel_links_to_runbooks_of_alerts(panel: dict[str, Any]) -> None:
    for link in panel.get("links", []):
        found = re.fullmatch(r"\$\{runbooks:raw\}/(\w+)/", link["url"])
        assert found
        assert found[1] in ALERTS
        assert found[1] in link["title"]


@every_panel
def test_colours_are_distinguishable_with_colour_blindness(panel: dict[str, Any]) -> None:
    chosen = {value for value in vars(palette).values() if isinstance(value, str)}
    for key, value in walk(panel["fieldConfig"]):
        if key in ("color", "fixedColor") and isinstance(value, str):
            assert value in chosen
        if key == "mode" and isinstance(value, str):
            assert value in ("absolute", "fixed", "continuous-BlYlRd", "dashed", "off")
    if panel["type"] == "timeseries":
        assert panel["fieldConfig"]["defaults"]["color"]["mode"]


@pytest.mark.parametrize("alert", ALERTS)
@every_board
def test_every_alert_has_a_panel_that_shows_what_it_asks_for(name: str, alert: str) -> None:
    first, *others = (metric for metric, _ in selectors(ALERTS[alert]["expr"]))
    if name == "source.json" and "source" not in SERVED[first]:
        return  # about the operator
    shown = {panel["title"]: set(metrics_of(panel)) for panel in panels_of(STORED[name])}
    linked = {
        panel["title"]
        for panel in panels_of(STORED[name])
        if any(alert in link["title"] for link in panel.get("links", []))
    }
    assert any(first in shown[title] for title in linked), "no panel links to its runbook"
    assert set(others) <= set().union(*shown.values())


@every_board
def test_nothing_of_a_dashboard_surprises(name: str) -> None:
    board = STORED[name]
    assert board["uid"] == f"balanced-source-{name.removesuffix('.json')}"
    assert len(board["uid"]) <= 40, "the most that Grafana takes"
    assert (board["timezone"], board["refresh"]) == ("", "")
    assert {p["datasource"]["uid"] for p in panels_of(board)} == {"${datasource}"}


@every_board
def test_panels_fill_their_rows_and_have_ids(name: str) -> None:
    panels = STORED[name]["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    widths: dict[int, int] = {}
    for place in places:
        widths[place["y"]] = widths.get(place["y"], 0) + place["w"]
    assert set(widths.values()) == {24}


def test_dashboards_link_to_each_other() -> None:
    links = {name: [link["tags"] for link in board["links"]] for name, board in STORED.items()}
    assert links == {name: [board["tags"]] for name, board in STORED.items()}
    uid = STORED["source.json"]["uid"]
    assert any(f"/d/{uid}?" in str(value) for _, value in walk(STORED["fleet.json"]))


def selectors(expr: str) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Metrics of a query with their label matchers: label, operator, value."""
    for metric, labels in SELECTOR.findall(expr):
        matchers = MATCHER.findall(labels)
        rest = MATCHER.sub("", labels).replace(",", "").strip()
        assert not rest, f"{labels} cannot be read"
        yield metric, matchers


def metrics_of(panel: dict[str, Any]) -> Iterator[str]:
    """Names of the metrics in the queries of a panel."""
    for target in panel["targets"]:
        yield from (metric for metric, _ in selectors(filled(target["expr"])))


def metrics_in_panels() -> set[str]:
    """Names of the metrics in all panels."""
    return {metric for _, panel in PANELS for metric in metrics_of(panel)}


def walk(value: object) -> Iterator[tuple[str, object]]:
    """All entries of nested dictionaries."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from walk(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner)
