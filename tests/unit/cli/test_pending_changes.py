"""An edit that a running query cannot take over is named."""

from typing import Any

import pytest

from balanced_source_operator.laptop.changes import pending_changes
from balanced_source_operator.spec import BalancedSourceSpec
from support.builders import make_spec, spec_json

STARTED = make_spec()
RAW = spec_json()["application"]
PIPELINE = RAW["pipeline"]
SINK = {"format": "parquet", "options": {"path": "other"}}


def edited(**changes: Any) -> BalancedSourceSpec:
    return make_spec(application={**RAW, **changes})


def of_files(**changes: Any) -> BalancedSourceSpec:
    files = {"paths": ["/in"], "format": "Csv", "schema": "id BIGINT", **changes}
    return make_spec(source={"files": files})


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (edited(), ()),
        (edited(image="another", driver={"cores": 3}), ()),
        (
            edited(pipeline={**PIPELINE, "sink": SINK}),
            ("spec.application.pipeline.sink changed: it takes effect at the next start",),
        ),
        (
            edited(
                sparkConf={"spark.a": "b"}, pipeline={**PIPELINE, "checkpointLocation": "/other"}
            ),
            ("spec.application.sparkConf, spec.application.pipeline.checkpointLocation ",),
        ),
        (
            edited(pipeline=None, mainApplicationFile="local:///app.py"),
            ("spec.application.mainApplicationFile, ",),
        ),
    ],
)
def test_a_change_that_needs_a_start_is_named(
    application: BalancedSourceSpec, expected: tuple[str, ...]
) -> None:
    found = pending_changes(STARTED, application)

    assert len(found) == len(expected)
    for sentence, beginning in zip(found, expected, strict=True):
        assert sentence.startswith(beginning)


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        (of_files(schema="id INT"), "schema"),
        (of_files(records={"mode": "FailFast", "separator": ";"}), "mode, sep"),
        (of_files(metadataColumns=False), "metadataColumns"),
    ],
)
def test_a_change_of_how_records_are_read_needs_a_start(
    spec: BalancedSourceSpec, names: str
) -> None:
    assert pending_changes(of_files(), spec) == (
        f"spec.source.files ({names}) changed: it takes effect at the next start",
    )


def test_what_a_running_query_takes_over_needs_none() -> None:
    spec = of_files(lookAhead=7, onLoss="Skip", splitBytes=65536, lateWindow="2h")

    assert pending_changes(of_files(), spec) == ()
