"""The driver's log has a line for each micro-batch."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source_spark.progress import ProgressLogger


def logged(capsys: pytest.CaptureFixture[str], *sources: tuple[Any, Any]) -> dict[str, Any]:
    """Return the line of a micro-batch whose sources have these end offsets and figures."""
    progress: Any = SimpleNamespace(
        batchId=7,
        timestamp="2026-01-31T12:00:00Z",
        numInputRows=3,
        durationMs={"addBatch": 5},
        sources=[SimpleNamespace(endOffset=end, latestOffset=latest) for end, latest in sources],
    )
    event: Any = SimpleNamespace(progress=progress)
    ProgressLogger().onQueryProgress(event)
    (line,) = capsys.readouterr().out.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_micro_batch_is_logged_with_what_it_has_left(capsys: pytest.CaptureFixture[str]) -> None:
    end = json.dumps({"epoch": 4, "parallelism": 2, "positions": []})

    assert logged(capsys, (end, json.dumps({"lag": 12})), (end, json.dumps({"lag": None}))) == {
        "event": "batch",
        "batch": 7,
        "at": "2026-01-31T12:00:00Z",
        "rows": 3,
        "durations": {"addBatch": 5},
        "sources": [
            {"epoch": 4, "parallelism": 2, "lag": 12},
            {"epoch": 4, "parallelism": 2},
        ],
    }


@pytest.mark.parametrize("end", [None, "", "null", "7", "{", "[]"])
def test_nothing_is_said_of_a_source_without_an_offset_of_ours(
    end: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """A query may read other sources as well."""
    assert logged(capsys, (end, json.dumps({"lag": 12})))["sources"] == [{}]


def test_an_unknown_lag_is_not_0(capsys: pytest.CaptureFixture[str]) -> None:
    end = json.dumps({"epoch": 4, "parallelism": 2})

    (source,) = logged(capsys, (end, None))["sources"]
    assert "lag" not in source
