"""The queries of dashboards as they are stored, with their variables filled in."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from support.dashboards import FOLDER

VALUES: Final[Mapping[str, str]] = {
    "$__rate_interval": "2m",
    "$__range": "3h",
    "$namespace": "jobs",
    "$source": "orders",
    "$top": "10",
}
"""Variable → a value that Grafana could give it."""


class Target(NamedTuple):
    """A query of a panel.

    Attributes:
        where: dashboard, panel and letter, for people.
        expr: PromQL without variables.
        legend: the template of the names of its series.
    """

    where: str
    expr: str
    legend: str


def stored() -> Mapping[str, dict[str, Any]]:
    """Return the dashboards in the chart: file → content."""
    return {file.name: json.loads(file.read_text()) for file in sorted(FOLDER.glob("*.json"))}


def panels_of(dashboard: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the panels that show something."""
    return (panel for panel in dashboard["panels"] if panel["type"] != "row")


def targets_of(name: str, dashboard: Mapping[str, Any]) -> Iterator[Target]:
    """Return the queries of all panels, and those behind the variables."""
    for panel in panels_of(dashboard):
        for target in panel["targets"]:
            where = f"{name}: {panel['title']} ({target['refId']})"
            yield Target(where, filled(target["expr"]), target["legendFormat"])
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            selector, label = _label_values(variable["query"]["query"])
            expr = f"count by ({label}) ({filled(selector)})"
            yield Target(f"{name}: ${variable['name']}", expr, "")


def filled(expr: str) -> str:
    """Return a query with values for its variables.

    Raises:
        ValueError: there is another variable.
    """
    for name, value in sorted(VALUES.items(), reverse=True):
        expr = expr.replace(name, value)
    if "$" in expr:
        raise ValueError(f"{expr}: there is no value for a variable")
    return expr


def _label_values(query: str) -> tuple[str, str]:
    found = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
    if not found:
        raise ValueError(f"{query}: write label_values(selector, label)")
    return found[1], found[2]
