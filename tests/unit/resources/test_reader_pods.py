"""An autoscaler may count pods only where there is one for each reader."""

from typing import Any

import pytest

from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import GROUP
from balanced_source_operator.resources.reader_pods import NO_PODS, reader_selector
from balanced_source_operator.resources.spark_application import executors, spark_application
from balanced_source_operator.spec import parse_spec
from support.builders import spec_json

SOURCE = Identity(namespace="jobs", name="orders", uid="u")
PIPELINE = {"pipeline": {"checkpointLocation": "s3a://bucket/orders"}}
PACKAGED = {"image": "spark:4", "sparkVersion": "4.2.0", **PIPELINE}


def selector(conf: dict[str, str] | None = None, **application: Any) -> str:
    spec = parse_spec({**spec_json(), "application": {**PACKAGED, **application}})
    return reader_selector(SOURCE, spec.application, conf or {})


def test_executors_with_one_slot_are_readers() -> None:
    assert selector() == f"{GROUP}/name=orders,spark-role=executor"


@pytest.mark.parametrize(
    "application",
    [
        pytest.param({"executor": {"cores": 4}}, id="four readers in a pod"),
        pytest.param({"executor": {"warmSpares": 1}}, id="a pod without a reader"),
        pytest.param({"sparkConf": {"spark.executor.cores": "2"}}, id="two by configuration"),
        pytest.param({"sparkConf": {"spark.task.cpus": "2"}}, id="no slot at all"),
        pytest.param(
            {"sparkConf": {"spark.dynamicAllocation.enabled": "TRUE"}}, id="Spark decides"
        ),
        pytest.param({"sparkConfFrom": [{"secretRef": {"name": "s"}}]}, id="unknown settings"),
        pytest.param(
            {"mainApplicationFile": "local:///opt/my.py", "pipeline": None}, id="executors stay"
        ),
    ],
)
def test_elsewhere_the_selector_matches_no_pod(application: dict[str, Any]) -> None:
    assert selector(**application) == f"{GROUP}/name=orders,{NO_PODS}"


def test_the_configuration_of_the_operator_counts_and_that_of_the_source_wins() -> None:
    assert selector({"spark.executor.cores": "2"}).endswith(NO_PODS)
    assert selector(
        {"spark.executor.cores": "2"}, sparkConf={"spark.executor.cores": "1"}
    ).endswith("executor")


def test_without_a_valid_spec_the_selector_matches_no_pod() -> None:
    assert reader_selector(SOURCE, None, {}) == f"{GROUP}/name=orders,{NO_PODS}"


@pytest.mark.parametrize("parallelism", [1, 2, 7])
def test_the_selector_matches_as_many_pods_as_readers(parallelism: int) -> None:
    application = parse_spec({**spec_json(), "application": PACKAGED}).application
    manifest = spark_application(
        SOURCE, application, name="o", parallelism=parallelism, secrets=(), conf={}
    )

    assert (
        manifest["spec"]["executor"]["instances"]
        == executors(parallelism, application)
        == parallelism
    )
    assert manifest["spec"]["executor"]["labels"] == {f"{GROUP}/name": "orders"}
