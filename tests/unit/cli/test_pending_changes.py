"""An edit that a running query cannot take over is named."""

from typing import Any

import pytest

from balanced_source_operator.laptop.changes import pending_changes
from balanced_source_operator.spec import Application
from support.builders import make_spec, spec_json

STARTED = make_spec().application
RAW = spec_json()["application"]
PIPELINE = RAW["pipeline"]
SINK = {"format": "parquet", "options": {"path": "other"}}


def edited(**changes: Any) -> Application:
    return make_spec(application={**RAW, **changes}).application


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
    application: Application, expected: tuple[str, ...]
) -> None:
    found = pending_changes(STARTED, application)

    assert len(found) == len(expected)
    for sentence, beginning in zip(found, expected, strict=True):
        assert sentence.startswith(beginning)
