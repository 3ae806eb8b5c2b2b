"""What a driver is started with: operator and driver may be of different releases."""

import json
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.documents import environment, pipeline
from balanced_source.documents.environment import from_variables, to_variables
from balanced_source.documents.pipeline import AvailableNow, Pipeline, ProcessingTime, Sink
from balanced_source.errors import CorruptDocumentError, IncompatibleVersionError, InvalidSpecError
from balanced_source_operator.controller.translate import reader_options
from balanced_source_operator.resources.pod_templates import driver_environment
from balanced_source_operator.spec import Application
from balanced_source_spark.application import described, source_options
from support.builders import identity, make_spec, spec_json
from support.golden import ENVIRONMENT, PIPELINE

WRITTEN: dict[str, Any] = {
    "checkpointLocation": "/ck",
    "columns": ["key"],
    "alignment": {"maxDrift": "5m", "group": "g"},
    "executorPatience": "1m",
    "acceptCheckpointOf": "shop/orders-old",
    "includeHeaders": False,
    "maxRecordsPerReader": 7,
    "sink": {
        "format": "jdbc",
        "options": {"user": "u"},
        "optionsFrom": [{"secretRef": {"name": "sink"}}],
        "partitionBy": ["day"],
    },
    "transform": "m:f",
    "trigger": {"processingTime": "1s"},
}
"""A pipeline with all fields, as a user writes it."""


def application(described: dict[str, Any]) -> Application:
    conf = [{"secretRef": {"name": "storage"}}]
    raw = spec_json(
        application={**spec_json()["application"], "pipeline": described, "sparkConfFrom": conf}
    )
    return make_spec(**raw).application


@pytest.mark.parametrize("trigger", [{"processingTime": "1s"}, {"availableNow": True}])
def test_the_operator_writes_what_release_0_1_0_wrote(trigger: dict[str, Any]) -> None:
    """Byte by byte: it dumped the spec. A running image of that release reads it."""
    wanted = application({**WRITTEN, "trigger": trigger})
    assert wanted.pipeline is not None
    dumped = wanted.pipeline.model_dump(mode="json", by_alias=True, exclude_none=True)

    variables = to_variables(driver_environment(identity(), wanted))

    assert variables.pop("BALANCED_SOURCE_PIPELINE") == json.dumps(dumped, sort_keys=True)
    assert variables == {
        "BALANCED_SOURCE_NAME": "orders",
        "BALANCED_SOURCE_NAMESPACE": "default",
        "BALANCED_SOURCE_UID": identity().uid,
        "BALANCED_SOURCE_SECRETS_DIR": "/etc/balanced-source/secrets",
        "BALANCED_SOURCE_CONF_SECRETS": "storage",
    }


@pytest.mark.parametrize("wanted", [True, False])
def test_headers_are_an_option_of_kafka_and_the_field_that_release_0_1_0_reads(
    wanted: bool,
) -> None:
    raw = spec_json()
    raw["application"]["pipeline"]["includeHeaders"] = wanted
    spec = make_spec(**raw)

    told = driver_environment(identity(), spec.application, options=reader_options(spec))
    written = json.loads(to_variables(told)["BALANCED_SOURCE_PIPELINE"])

    assert written["includeHeaders"] is wanted
    assert "options" not in written, "an option would mean nothing to it"
    environment, read = described(to_variables(told))
    assert source_options(read, environment).get("includeHeaders") == ("true" if wanted else None)


def test_options_beside_the_headers_stay_options() -> None:
    told = replace(PIPELINE, connector="tapes", options={"includeHeaders": "true", "side": "b"})

    assert pipeline.to_json(told)["options"] == {"side": "b"}
    assert pipeline.from_json(pipeline.to_json(told)) == told
    false = replace(told, options={"includeHeaders": "false"})
    assert pipeline.from_json(pipeline.to_json(false)) == false


def test_the_driver_reads_what_the_operator_wrote() -> None:
    told = driver_environment(identity(), application(WRITTEN))

    assert from_variables({**to_variables(told), "PATH": "/bin"}) == told
    assert described(to_variables(told)) == (told, told.pipeline)


def test_fields_that_are_left_out_have_defaults() -> None:
    least = {
        "checkpointLocation": "/ck",
        "sink": {"format": "x"},
        "trigger": {"processingTime": "0"},
    }

    assert pipeline.from_json(least) == Pipeline(
        checkpoint_location="/ck", sink=Sink(format="x"), trigger=ProcessingTime("0")
    )


def test_a_false_available_now_is_not_a_trigger() -> None:
    both = {**WRITTEN, "trigger": {"availableNow": False, "processingTime": "2s"}}

    assert pipeline.from_json(both | {"alignment": None}).trigger == ProcessingTime("2s")
    assert (
        pipeline.from_json({**both, "alignment": None, "trigger": {"availableNow": True}}).trigger
        == AvailableNow()
    )


@pytest.mark.parametrize(
    "broken",
    [
        [],
        None,
        {},
        {"sink": 1},
        {**WRITTEN, "trigger": {}},
        {**WRITTEN, "alignment": {}},
        {**WRITTEN, "sink": {"format": "x", "optionsFrom": [{}]}},
        {"version": "x"},
    ],
)
def test_an_invalid_pipeline_is_reported_with_a_sentence(broken: Any) -> None:
    with pytest.raises(CorruptDocumentError, match="pipeline is malformed"):
        pipeline.from_json(broken)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"BALANCED_SOURCE_NAME": ""}, "BALANCED_SOURCE_NAME is missing"),
        ({"BALANCED_SOURCE_PIPELINE": "{"}, "BALANCED_SOURCE_PIPELINE: the pipeline is not JSON"),
        ({"BALANCED_SOURCE_PIPELINE": "{}"}, "pipeline is malformed"),
        ({"BALANCED_SOURCE_ENVIRONMENT_VERSION": "x"}, "'x', not a number"),
    ],
)
def test_a_program_without_the_operators_environment_says_so(
    changes: dict[str, str], says: str
) -> None:
    with pytest.raises(CorruptDocumentError, match=says):
        from_variables({**to_variables(ENVIRONMENT), **changes})
    with pytest.raises(InvalidSpecError, match="this program is started by the operator"):
        described({**to_variables(ENVIRONMENT), **changes})


def test_the_packaged_application_needs_a_pipeline() -> None:
    variables = to_variables(ENVIRONMENT)
    del variables["BALANCED_SOURCE_PIPELINE"]

    assert environment.from_variables(variables).pipeline is None, "somebody's own program has none"
    with pytest.raises(InvalidSpecError, match="there is no pipeline"):
        described(variables)


def test_an_image_that_is_too_old_is_named() -> None:
    newer = json.dumps({**pipeline.to_json(PIPELINE), "version": 3})

    with pytest.raises(IncompatibleVersionError, match=r"version 3.*up to 2"):
        from_variables({**to_variables(ENVIRONMENT), "BALANCED_SOURCE_PIPELINE": newer})
    with pytest.raises(
        InvalidSpecError,
        match=r"spec\.application\.image.*version 3.*image of the operator's release",
    ):
        described({**to_variables(ENVIRONMENT), "BALANCED_SOURCE_PIPELINE": newer})


@pytest.mark.parametrize(
    ("text", "port"),
    [("0", 0), ("", 0), ("65535", 65535), ("65536", None), ("-1", None), ("٣", None)],
)
def test_the_port_of_metrics_is_a_port(text: str, port: int | None) -> None:
    given = {environment.METRICS_PORT: text}

    if port is not None:
        assert environment.port_of(given) == port
        return
    with pytest.raises(CorruptDocumentError, match="not a port from 0 to 65535"):
        environment.port_of(given)
