"""An alert about a source has no label of the pod that told: the next pod has others."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from alerts.scraped import SCRAPE_LABELS, scraped
from support.served_series import of_operator

ROOT = Path(__file__).parents[3]
RULES: list[dict[str, Any]] = yaml.safe_load(
    (ROOT / "charts/balanced-source/files/alerts.yaml").read_text()
)
OF_SOURCES: Final = {name for name, labels in of_operator().items() if "source" in labels}
_WITHOUT: Final = re.compile(r"\b(?:sum|min|max) without \(([^)]*)\)\s*\(")
_ONLY_MATCHED: Final = re.compile(r"\b(?:unless|and) on \(namespace, source\).*", re.DOTALL)


def metrics_of(expr: str) -> set[str]:
    return set(re.findall(r"balanced_source_\w+", expr))


def with_labels_of_a_scrape(expr: str) -> set[str]:
    """Metrics of sources in an expression whose labels of the scrape reach its result."""
    left = _ONLY_MATCHED.sub("", expr)
    while found := _WITHOUT.search(left):
        labels = {label.strip() for label in found.group(1).split(",")}
        end = closing(left, found.end())
        inside = "" if labels >= SCRAPE_LABELS.keys() else left[found.end() : end]
        left = left[: found.start()] + inside + left[end + 1 :]
    return metrics_of(left) & OF_SOURCES


def closing(text: str, begin: int) -> int:
    """Index of the parenthesis that closes the one before `begin`."""
    depth = 1
    for index in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if not depth:
            return index
    raise ValueError(f"no parenthesis closes in {text!r}")


ABOUT_SOURCES = [rule for rule in RULES if metrics_of(rule["expr"]) & OF_SOURCES]


@pytest.mark.parametrize("rule", ABOUT_SOURCES, ids=[rule["alert"] for rule in ABOUT_SOURCES])
def test_an_alert_about_a_source_does_not_depend_on_the_pod_that_told(rule: dict[str, Any]) -> None:
    assert with_labels_of_a_scrape(rule["expr"]) == set()


def test_most_alerts_are_about_sources() -> None:
    """Otherwise the test above tests little."""
    others = {rule["alert"] for rule in RULES} - {rule["alert"] for rule in ABOUT_SOURCES}
    assert others == {
        "BalancedSourceApiErrors",
        "BalancedSourceOperatorDown",
        "BalancedSourceOperatorNotReady",
        "BalancedSourceOperatorRestarting",
    }


ALL: Final = "without (container, endpoint, instance, node, pod)"


@pytest.mark.parametrize(
    ("expr", "found"),
    [
        ("balanced_source_epoch_lag > 0", {"balanced_source_epoch_lag"}),
        (f"max {ALL} (balanced_source_epoch_lag) > 0", set()),
        ("max without (pod) (balanced_source_epoch_lag) > 0", {"balanced_source_epoch_lag"}),
        (f"max {ALL} (changes(balanced_source_epoch_lag[1h])) > 0", set()),
        (
            f"max {ALL} (balanced_source_epoch_lag) > 0 or balanced_source_epoch > 0",
            {"balanced_source_epoch"},
        ),
        (f"max {ALL} (balanced_source_lag_records) > 0 unless on (namespace, source) a", set()),
        ("balanced_source_leader == 1", set()),
    ],
)
def test_labels_of_a_scrape_are_found(expr: str, found: set[str]) -> None:
    assert with_labels_of_a_scrape(expr) == found


def test_series_of_the_cases_get_the_labels_of_a_scrape() -> None:
    case = {
        "name": "c",
        "input_series": [
            {"series": 'balanced_source_epoch{source="s"}', "values": "1"},
            {"series": 'balanced_source_leader{pod="a"}', "values": "1"},
        ],
    }

    (found,) = scraped([case])

    first, second = found["input_series"]
    labels = ",".join(f'{name}="{value}"' for name, value in SCRAPE_LABELS.items())
    assert first == {"series": f'balanced_source_epoch{{{labels},source="s"}}', "values": "1"}
    assert second == case["input_series"][1], "the case says which pod it is"
