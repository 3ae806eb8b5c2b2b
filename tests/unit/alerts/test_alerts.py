"""Each alert uses metrics that are served, has a runbook, and is played by `make test-alerts`."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from balanced_source.reasons import Reason
from balanced_source_operator.controller import conditions
from support.runbooks import head, summary_of
from support.served_metrics import served

ROOT = Path(__file__).parents[3]
RULES: list[dict[str, Any]] = yaml.safe_load(
    (ROOT / "charts/balanced-source/files/alerts.yaml").read_text()
)
CASES = yaml.safe_load((ROOT / "tests/alerts/cases.yaml").read_text())["tests"]
RUNBOOKS = ROOT / "docs/runbooks"
NAMES = [rule["alert"] for rule in RULES]
METRIC = re.compile(r"balanced_source_\w+")


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_an_alert_asks_for_metrics_that_are_served(rule: dict[str, Any]) -> None:
    assert set(METRIC.findall(rule["expr"])) <= served()
    types = set(re.findall(r'\btype="(\w+)"', rule["expr"]))
    assert types <= {
        conditions.READY,
        conditions.DEGRADED,
        conditions.DATA_LOSS,
        conditions.AUTOSCALING,
    }
    assert set(re.findall(r'\breason="(\w+)"', rule["expr"])) <= {reason.value for reason in Reason}


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_an_alert_says_what_is_wrong_and_has_a_runbook(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert {"summary", "description"} <= rule["annotations"].keys()
    page = (RUNBOOKS / f"{rule['alert']}.md").read_text()
    assert [f"## {part}" in page for part in ("Meaning", "Look at", "Do")] == [True] * 3


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_a_runbook_begins_with_the_text_of_its_alert(rule: dict[str, Any]) -> None:
    """People search for what their pager shows."""
    lines = (RUNBOOKS / f"{rule['alert']}.md").read_text().splitlines()

    assert lines[:3] == [f"# {rule['alert']}", "", head(rule)]


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({}, "**NAMESPACE/SOURCE is late.** Severity warning; fires when this is true: `a > 0`"),
        ({"for": "1m"}, "fires when this is true for 1 minute: `a > 0`"),
        ({"for": "15m", "expr": "a\n  > 0"}, "fires when this is true for 15 minutes: `a > 0`"),
        (
            {"for": "1m", "keep_firing_for": "5m"},
            "fires when this is true for 1 minute, until it is false for 5 minutes: `a > 0`",
        ),
    ],
)
def test_the_line_of_an_alert_has_severity_time_and_rule(
    changed: dict[str, Any], wanted: str
) -> None:
    rule = {
        "alert": "Late",
        "expr": "a > 0",
        "labels": {"severity": "warning"},
        "annotations": {"summary": "{{ $labels.namespace }}/{{ $labels.source }} is late"},
    }
    assert wanted in head(rule | changed)


def test_every_alert_is_played_and_fires_once_at_least() -> None:
    firing = {
        test["alertname"]
        for case in CASES
        for test in case.get("alert_rule_test", ())
        if test["exp_alerts"]
    }
    assert firing == set(NAMES)


def test_every_runbook_is_of_an_alert_and_in_the_list() -> None:
    pages = {file.stem for file in RUNBOOKS.glob("*.md")} - {"README"}
    assert pages == set(NAMES)
    index = (RUNBOOKS / "README.md").read_text()
    listed = re.findall(r"\| ([^|\n]+) \| \[\w+\]\((\w+)\.md\) \| (\w+) \|", index)
    assert sorted(listed) == sorted(
        (summary_of(rule), rule["alert"], rule["labels"]["severity"]) for rule in RULES
    )


def test_series_of_the_cases_are_served() -> None:
    series = [entry["series"] for case in CASES for entry in case["input_series"]]
    assert {match for text in series for match in METRIC.findall(text)} <= served()
