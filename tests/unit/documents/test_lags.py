"""Lags in a report: bounded, unknown never 0, and nothing that an older operator could not read."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source.documents import report
from balanced_source.documents.lags import MOST_SPLITS, Lags, from_metrics, to_metrics
from support.golden_files import golden
from support.golden_reports import LAGS, T


def splits(count: int) -> dict[SplitId, int | None]:
    return {("main", "orders", number): number for number in range(count)}


def test_few_splits_have_a_lag_each_and_unknown_stays_unknown() -> None:
    lags = {**splits(3), ("main", "orders", 3): None}

    assert from_metrics(to_metrics(lags, {0: 3})) == Lags(splits=lags)


def test_many_splits_have_a_lag_per_reader() -> None:
    readers = {1: None, 0: 7}
    metrics = to_metrics(splits(MOST_SPLITS + 1), readers)

    assert from_metrics(metrics) == Lags(readers=readers)
    assert metrics == {"readerLags": [[0, 7], [1, None]]}


def test_the_most_splits_that_have_a_lag_each() -> None:
    assert from_metrics(to_metrics(splits(MOST_SPLITS), {0: 1})) == Lags(splits=splits(MOST_SPLITS))


def test_a_source_without_splits_says_nothing() -> None:
    assert to_metrics({}, {0: 0}) == {}
    assert from_metrics({"skew": 1.0}) == Lags()


@pytest.mark.parametrize(
    "metrics",
    [
        {"splitLags": "x"},
        {"splitLags": [["c"]]},
        {"splitLags": [[["c", "t"], [[0, MOST_SPLITS + 1]], list(range(MOST_SPLITS + 1))]]},
        {"splitLags": {"a": 1}},
        {"readerLags": 5},
        {"readerLags": [[1]]},
        {"readerLags": [["0", 1]]},
        {"readerLags": [[[0], 1]]},
    ],
)
def test_malformed_lags_are_unknown(metrics: dict[str, Any]) -> None:
    assert from_metrics(metrics) == Lags()


@pytest.mark.parametrize("value", [-1, "7", 1.5, True, {}])
def test_an_invalid_number_of_records_is_unknown(value: Any) -> None:
    found = from_metrics(
        {"readerLags": [[0, value], [1, 4]], "splitLags": [[["c", "t"], [[0, 2]], [value, 4]]]}
    )

    assert found == Lags(splits={("c", "t", 0): None, ("c", "t", 1): 4}, readers={0: None, 1: 4})


def test_every_operator_reads_such_a_report() -> None:
    """It has the version that reports without lags have."""
    text = golden("report", 2, "-lags")

    assert report.decode(text) == LAGS
    assert from_metrics(report.decode(text).metrics).splits == {T[0]: 3, T[1]: None}
    assert (
        report.encode(LAGS, source="u")[:60]
        == report.encode(replace(LAGS, metrics={}), source="u")[:60]
    )
