"""What a driver knows of the time between two micro-batches."""

import json
from typing import Any

import pytest

from balanced_source.documents.environment import interval_of
from balanced_source.errors import CorruptDocumentError

SINK = {"format": "noop", "options": {}, "optionsFrom": [], "partitionBy": []}


def variables(**pipeline: Any) -> dict[str, str]:
    values = {"checkpointLocation": "/c", "includeHeaders": False, "sink": SINK, **pipeline}
    return {"BALANCED_SOURCE_PIPELINE": json.dumps(values)}


@pytest.mark.parametrize(("text", "seconds"), [("500ms", 0.5), ("1m30s", 90.0), ("0s", 0.0)])
def test_the_packaged_application_has_an_interval(text: str, seconds: float) -> None:
    assert interval_of(variables(trigger={"processingTime": text})) == seconds


def test_what_reads_the_available_records_has_none() -> None:
    assert interval_of(variables(trigger={"availableNow": True})) == 0.0


def test_nothing_is_known_of_a_program_of_the_users_own() -> None:
    assert interval_of({}) == 0.0


def test_a_malformed_pipeline_is_an_error() -> None:
    with pytest.raises(CorruptDocumentError, match="BALANCED_SOURCE_PIPELINE"):
        interval_of({"BALANCED_SOURCE_PIPELINE": "{"})
