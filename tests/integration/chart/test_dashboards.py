"""The chart's dashboards are ConfigMaps that Grafana's sidecar finds."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.dashboards import DASHBOARDS
from support.dashboards.queries import stored, targets_of
from testbed.errors import CommandError

pytestmark = pytest.mark.integration
Render = Callable[..., list[dict[str, Any]]]
URL = "https://example.org/runbooks"


def config_maps(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [document for document in documents if document["kind"] == "ConfigMap"]


def dashboards(render: Render, **values: Any) -> dict[str, dict[str, Any]]:
    """Dashboards in the ConfigMaps of the chart: file → content."""
    found = config_maps(render(metrics={"dashboards": {"enabled": True}, **values}))
    return {
        name.removeprefix("balanced-source-"): json.loads(content)
        for config_map in found
        for name, content in config_map["data"].items()
    }


def links(dashboard: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return (link for panel in dashboard["panels"] for link in panel.get("links", []))


def variables(dashboard: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {variable["name"]: variable for variable in dashboard["templating"]["list"]}


def test_dashboards_are_off_by_default(render: Render) -> None:
    assert config_maps(render()) == []


def test_each_dashboard_is_in_a_config_map_that_the_sidecar_finds(render: Render) -> None:
    found = config_maps(render(metrics={"dashboards": {"enabled": True}}))
    assert len(found) == len(DASHBOARDS) == 2
    for config_map in found:
        assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert config_map["metadata"]["namespace"] == "system"
        assert "annotations" not in config_map["metadata"]
        assert sum(map(len, config_map["data"].values())) < 512 * 1024, "a ConfigMap holds 1 MiB"
    names = [config_map["metadata"]["name"] for config_map in found]
    assert names == [
        "demo-balanced-source-dashboard-fleet",
        "demo-balanced-source-dashboard-source",
    ]


def test_labels_annotations_and_namespace_are_chosen_by_values(render: Render) -> None:
    options = {
        "enabled": True,
        "labels": {"dashboards": "yes", "grafana_dashboard": None},
        "annotations": {"grafana_folder": "Streaming"},
        "namespace": "monitoring",
    }
    for config_map in config_maps(render(metrics={"dashboards": options})):
        assert config_map["metadata"]["labels"]["dashboards"] == "yes"
        assert "grafana_dashboard" not in config_map["metadata"]["labels"]
        assert config_map["metadata"]["annotations"] == {"grafana_folder": "Streaming"}
        assert config_map["metadata"]["namespace"] == "monitoring"


def test_panels_are_those_of_the_files(render: Render) -> None:
    rendered = dashboards(render)
    assert rendered.keys() == DASHBOARDS.keys()
    for name, dashboard in stored().items():
        made = rendered[name]
        assert made["uid"] == dashboard["uid"]
        assert list(targets_of(name, made)) == list(targets_of(name, dashboard))
        assert [p["gridPos"] for p in made["panels"]] == [p["gridPos"] for p in dashboard["panels"]]


def test_links_begin_with_the_address_of_the_runbooks(render: Render) -> None:
    for dashboard in dashboards(render, prometheusRule={"runbookUrl": f"{URL}/"}).values():
        runbooks = variables(dashboard)["runbooks"]
        assert (runbooks["query"], runbooks["current"]["value"]) == (URL, URL)
        assert runbooks["hide"] == 2, "it cannot be changed in a dashboard of the sidecar"
        assert len(list(links(dashboard))) > 10
        assert all(link["url"].endswith(".md") for link in links(dashboard))


def test_links_begin_with_the_address_of_the_site(render: Render) -> None:
    for config_map in config_maps(
        render(documentationUrl=URL, metrics={"dashboards": {"enabled": True}})
    ):
        [dashboard] = map(json.loads, config_map["data"].values())
        assert variables(dashboard)["runbooks"]["query"] == f"{URL}/runbooks"
        assert all(link["url"].endswith("/") for link in links(dashboard))


def test_without_that_address_no_link_leads_nowhere(render: Render) -> None:
    for dashboard in dashboards(render).values():
        assert list(links(dashboard)) == []
        assert "runbooks" not in variables(dashboard)
        assert dashboard["links"], "the link to the other dashboard stays"


@pytest.mark.parametrize("options", [{"namespace": "Not_a_name"}, {"labels": {"a": 1}}, {"x": 1}])
def test_wrong_values_are_refused(render: Render, options: dict[str, Any]) -> None:
    with pytest.raises(CommandError, match="dashboards"):
        render(metrics={"dashboards": {"enabled": True, **options}})
