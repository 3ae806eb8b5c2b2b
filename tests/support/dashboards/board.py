"""A dashboard from its rows: variables, ids and the settings that both share."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from grafana_foundation_sdk.builders import dashboard as dashboards
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from support.dashboards.panels import DATASOURCE, AnyPanel

TAG: Final = "balanced-source"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Panels below a heading."""

    title: str
    panels: Sequence[AnyPanel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A dashboard.

    Attributes:
        uid, title, text: its address, its name, and what it is for.
        other: the dashboard that it links to.
        variables: its own, behind that of the data source.
    """

    uid: str
    title: str
    text: str
    other: str
    variables: Sequence[dashboards.QueryVariable | dashboards.CustomVariable]
    rows: Sequence[Row]


def rendered(board: Board) -> str:
    """Return the JSON of a dashboard.

    It follows the time zone of the viewer's profile. It refreshes when the viewer asks for it.
    """
    made = (
        dashboards.Dashboard(board.title)
        .uid(board.uid)
        .description(board.text)
        .tags([TAG])
        .timezone("")
        .refresh("")
        .time("now-3h", "now")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .link(_to_other(board.other))
    )
    for variable in (_datasource(), *board.variables, _filters(), _runbooks()):
        made = made.with_variable(variable)
    number = 0
    for row in board.rows:
        number += 1
        made = made.with_row(dashboards.Row(row.title).id(number))
        for panel in row.panels:
            number += 1
            made = made.with_panel(panel.id(number))
    text = json.dumps(made.build(), cls=JSONEncoder, indent=1, sort_keys=True, ensure_ascii=False)
    return text + "\n"


def labels_of(name: str, label: str, selector: str, text: str) -> dashboards.QueryVariable:
    """Return a variable with the values that a label has within the dashboard's time."""
    query: dict[str, object] = {
        "qryType": 1,
        "query": f"label_values({selector}, {name})",
        "refId": f"values-of-{name}",
    }
    return (
        dashboards.QueryVariable(name)
        .label(label)
        .description(text)
        .query(query)
        .datasource(DATASOURCE)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.NATURAL_ASC)
    )


def option(text: str, value: str) -> VariableOption:
    """Return a value of a variable that is chosen at first."""
    return VariableOption(selected=True, text=text, value=value)


def _datasource() -> dashboards.DatasourceVariable:
    return (
        dashboards.DatasourceVariable("datasource")
        .label("Prometheus")
        .description("The Prometheus that scrapes the operator and the drivers.")
        .type("prometheus")
    )


def _filters() -> dashboards.AdHocVariable:
    return (
        dashboards.AdHocVariable("filters")
        .label("More filters")
        .description("Further label filters for all panels, such as the label of a cluster.")
        .datasource(DATASOURCE)
    )


def _runbooks() -> dashboards.TextBoxVariable:
    """Return the address of the runbooks: the chart fills it in, or removes it with the links."""
    return (
        dashboards.TextBoxVariable("runbooks")
        .label("Address of the runbooks")
        .description(
            "Address of the runbooks on your copy of the documentation site. The links of the"
            " panels start with it."
        )
        .default_value("")
    )


def _to_other(title: str) -> dashboards.DashboardLink:
    return (
        dashboards.DashboardLink(title)
        .type(DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .include_vars(include_vars=True)
        .keep_time(keep_time=True)
    )
