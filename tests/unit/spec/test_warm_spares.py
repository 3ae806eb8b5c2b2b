"""Spares are kept where our program decides how many executors there are."""

from typing import Any

import pytest

from balanced_source.documents import pipeline as pipeline_document
from balanced_source.errors import InvalidSpecError
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.pod_templates import driver_environment
from balanced_source_operator.resources.spark_application import spark_application
from balanced_source_operator.spec import BalancedSourceSpec, parse_spec
from support.builders import spec_json

SOURCE = Identity(namespace="jobs", name="orders", uid="u")


def spec(spares: int, **application: Any) -> BalancedSourceSpec:
    base = spec_json()
    executor = {"cores": 2, "warmSpares": spares}
    return parse_spec(
        {**base, "application": {**base["application"], "executor": executor, **application}}
    )


def test_spares_are_created_with_the_application_and_told_to_the_driver() -> None:
    application = spec(3).application
    manifest = spark_application(SOURCE, application, name="o", parallelism=5, secrets=(), conf={})
    told = driver_environment(SOURCE, application).pipeline

    assert manifest["spec"]["executor"]["instances"] == 3 + 3
    assert told is not None
    assert pipeline_document.decode(pipeline_document.encode(told)).warm_spares == 3


def test_without_spares_the_driver_is_told_what_it_was_told_before() -> None:
    """Another text would restart the applications of all sources at an upgrade."""
    told = driver_environment(SOURCE, spec(0).application).pipeline

    assert told is not None
    assert "warmSpares" not in pipeline_document.encode(told)


@pytest.mark.parametrize(
    "application",
    [
        {"mainApplicationFile": "local:///opt/my.py"},
        {"sparkConf": {"spark.dynamicAllocation.enabled": "True"}},
    ],
)
def test_spares_that_no_one_would_keep_are_refused(application: dict[str, Any]) -> None:
    assert spec(0, **application)
    with pytest.raises(InvalidSpecError, match=r"executor\.warmSpares needs the packaged"):
        spec(1, **application)
