"""Panels with the same rules for all: units, colours, gaps, and links to runbooks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as dashboards
from grafana_foundation_sdk.builders import prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.models import common, units
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    FieldColorSeriesByMode,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMapping,
    ValueMappingResult,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from support.dashboards.palette import BAD, GOOD, NEUTRAL, SERIES

Panel = TypeVar("Panel", stat.Panel, statetimeline.Panel, table.Panel, timeseries.Panel)
AnyPanel = stat.Panel | statetimeline.Panel | table.Panel | timeseries.Panel

DATASOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")

STEP: Final = "30s"
"""The interval at which the chart's monitors scrape: `$__rate_interval` becomes four of it."""

RECORDS: Final = units.Short
COUNT: Final = units.Short
SECONDS: Final = units.Seconds
PERCENT: Final = units.Percent
RECORDS_PER_SECOND: Final = units.RecordsPerSecond
BYTES_PER_SECOND: Final = units.BytesPerSecondIEC
REQUESTS_PER_SECOND: Final = units.RequestsPerSecond

SOURCE_UID: Final = "balanced-source-source"
OF_SOURCE: Final = "{{namespace}}/{{source}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a panel says about itself.

    Attributes:
        title, text: its heading; what it shows and what to do, behind the (i).
        alerts: whose runbooks it links to.
        width: of 24.
    """

    title: str
    text: str
    alerts: Sequence[str] = ()
    width: int = 12
    height: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query of a panel, and the name of its series."""

    expr: str
    legend: str = OF_SOURCE


def named(about: About, unit: str, /, *, axis: str = "", **queries: str) -> timeseries.Panel:
    """Return lines with a name and a colour each: name with underscores → query."""
    names = [name.replace("_", " ") for name in queries]
    found = [
        Query(expr=expr, legend=name) for name, expr in zip(names, queries.values(), strict=True)
    ]
    panel = _lines(about, unit, axis, found).color_scheme(
        dashboards.FieldColor().mode(FieldColorModeId.FIXED).fixed_color(NEUTRAL)
    )
    for name, color in zip(names, SERIES, strict=False):
        fixed = {"mode": FieldColorModeId.FIXED, "fixedColor": color}
        panel = panel.override_by_name(name, [DynamicConfigValue(id_val="color", value=fixed)])
    return panel


def ranked(
    about: About, unit: str, expr: str, *, legend: str = OF_SOURCE, axis: str = ""
) -> timeseries.Panel:
    """Return lines whose number is unknown: their colour says how high they are."""
    panel = _lines(about, unit, axis, [Query(expr=expr, legend=legend)]).color_scheme(
        dashboards.FieldColor()
        .mode(FieldColorModeId.CONTINUOUS_BL_YL_RD)
        .series_by(FieldColorSeriesByMode.MAX)
    )
    return (
        panel.data_links([_to_source("${__field.labels.", "}")]) if legend == OF_SOURCE else panel
    )


def limited(panel: timeseries.Panel, limit: float) -> timeseries.Panel:
    """Draw the value from which on an alert fires."""
    return panel.thresholds(_thresholds(limit)).thresholds_style(
        common_builders.GraphThresholdsStyleConfig().mode(common.GraphThresholdsStyleMode.DASHED)
    )


def _lines(about: About, unit: str, axis: str, queries: list[Query]) -> timeseries.Panel:
    panel = (
        timeseries.Panel()
        .unit(unit)
        .axis_soft_min(0)
        .axis_label(axis)
        .line_width(1)
        .fill_opacity(0)
        .show_points(common.VisibilityMode.AUTO)
        .span_nulls(False)
        .legend(_legend())
        .tooltip(
            common_builders.VizTooltipOptions()
            .mode(common.TooltipDisplayMode.MULTI)
            .sort(common.SortOrder.DESCENDING)
        )
    )
    return _described(panel, about, queries)


def _legend() -> common_builders.VizLegendOptions:
    return (
        common_builders.VizLegendOptions()
        .display_mode(common.LegendDisplayMode.TABLE)
        .placement(common.LegendPlacement.BOTTOM)
        .show_legend(show_legend=True)
        .calcs(["last", "max"])
        .sort_by("Max")
        .sort_desc(sort_desc=True)
    )


def figures(
    about: About, unit: str, /, *, bad_from: float | None = None, **queries: str
) -> stat.Panel:
    """Return the values of this moment: unknown ones are called so, and never an earlier value."""
    found = [Query(expr=expr, legend=name.replace("_", " ")) for name, expr in queries.items()]
    panel = (
        stat.Panel()
        .unit(unit)
        .no_value("unknown")
        .thresholds(_thresholds(bad_from))
        .color_mode(common.BigValueColorMode.VALUE)
        .graph_mode(common.BigValueGraphMode.NONE)
        .text_mode(common.BigValueTextMode.VALUE_AND_NAME)
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
    )
    return _described(panel, about, found, instant=True)


def highlighted(panel: stat.Panel, name: str, *, below: float) -> stat.Panel:
    """Mark a value of figures as bad if it is too small."""
    steps = [Threshold(value=None, color=BAD), Threshold(value=below, color=GOOD)]
    value = {"mode": ThresholdsMode.ABSOLUTE, "steps": steps}
    return panel.override_by_name(name, [DynamicConfigValue(id_val="thresholds", value=value)])


def words(about: About, expr: str, legend: str) -> stat.Panel:
    """Return labels as text, such as the present reason of a condition."""
    panel = (
        stat.Panel()
        .no_value("unknown")
        .thresholds(_thresholds(None))
        .color_mode(common.BigValueColorMode.VALUE)
        .graph_mode(common.BigValueGraphMode.NONE)
        .text_mode(common.BigValueTextMode.NAME)
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
    )
    return _described(panel, about, [Query(expr=expr, legend=legend)], instant=True)


def states(about: About, query: Query, *, good: str, bad: str) -> statetimeline.Panel:
    """Return a band per condition.

    Args:
        about: the panel.
        query: its series are 1 or 0.
        good: regular expression of the names of series that are good while 1.
        bad: the same of those that are bad while 1.
    """
    panel = _timeline(about, query).mappings(_mapping(NEUTRAL, NEUTRAL))
    for names, when_true, when_false in ((good, GOOD, BAD), (bad, BAD, GOOD)):
        mappings = DynamicConfigValue(id_val="mappings", value=_mapping(when_true, when_false))
        panel = panel.override_by_regexp(f"/^({names})$/", [mappings])
    return panel


def bands(about: About, query: Query) -> statetimeline.Panel:
    """Return a band per series, for as long as it is there."""
    present: list[ValueMapping] = [ValueMap({"1": ValueMappingResult(color=GOOD)})]
    return _timeline(about, query).mappings(present).show_value(common.VisibilityMode.NEVER)


def _timeline(about: About, query: Query) -> statetimeline.Panel:
    panel = (
        statetimeline.Panel()
        .show_value(common.VisibilityMode.AUTO)
        .merge_values(merge_values=True)
        .row_height(0.8)
        .legend(common_builders.VizLegendOptions().show_legend(show_legend=False))
        .color_scheme(dashboards.FieldColor().mode(FieldColorModeId.FIXED).fixed_color(NEUTRAL))
    )
    return _described(panel, about, [query])


def _mapping(when_true: str, when_false: str) -> list[ValueMapping]:
    return [
        ValueMap(
            {
                "1": ValueMappingResult(text="True", color=when_true, index=0),
                "0": ValueMappingResult(text="False", color=when_false, index=1),
            }
        )
    ]


def listed(about: About, expr: str, columns: Sequence[str]) -> table.Panel:
    """Return a row per series, with a link to the dashboard of its source."""
    order = {name: number for number, name in enumerate(columns)}
    options = {"excludeByName": {"Time": True, "Value": True}, "indexByName": order}
    link = DynamicConfigValue(id_val="links", value=[_to_source("${__data.fields.", "}").build()])
    panel = (
        table.Panel()
        .no_value("none, or the operator is not scraped")
        .with_transformation(DataTransformerConfig(id_val="organize", options=options))
        .override_by_name("source", [link])
    )
    return _described(panel, about, [Query(expr=expr)], instant=True, form=PromQueryFormat.TABLE)


def _described(
    panel: Panel,
    about: About,
    queries: list[Query],
    *,
    instant: bool = False,
    form: PromQueryFormat = PromQueryFormat.TIME_SERIES,
) -> Panel:
    for number, query in enumerate(queries):
        target = (
            prometheus.Dataquery()
            .expr(query.expr)
            .legend_format(query.legend)
            .ref_id(chr(ord("A") + number))
            .format(form)
            .interval(STEP)
        )
        panel = panel.with_target(target.instant() if instant else target.range())
    return (
        panel.title(about.title)
        .description(about.text)
        .datasource(DATASOURCE)
        .span(about.width)
        .height(about.height)
        .links([_runbook(alert) for alert in about.alerts])
    )


def _thresholds(limit: float | None) -> dashboards.ThresholdsConfig:
    steps = [Threshold(value=None, color=GOOD)]
    if limit is not None:
        steps.append(Threshold(value=limit, color=BAD))
    return dashboards.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


def _runbook(alert: str) -> dashboards.DashboardLink:
    return (
        dashboards.DashboardLink(f"Runbook: {alert}")
        .type(DashboardLinkType.LINK)
        .url(f"${{runbooks:raw}}/{alert}/")
        .target_blank(target_blank=True)
    )


def _to_source(before: str, after: str) -> dashboards.DashboardLink:
    """Return a link to the dashboard of the source that a series or a row is about."""
    variables = "&".join(f"var-{name}={before}{name}{after}" for name in ("namespace", "source"))
    return dashboards.DashboardLink("Show this source").url(
        f"/d/{SOURCE_UID}?${{datasource:queryparam}}&{variables}&${{__url_time_range}}"
    )
