"""Drivers serve metrics where the operator says, unless the user says otherwise."""

from typing import Any

import pytest

from balanced_source.documents import environment as document
from balanced_source.documents.environment import DriverEnvironment, from_variables, to_variables
from balanced_source.errors import CorruptDocumentError
from balanced_source_operator.resources.apache_application import apache_application
from balanced_source_operator.resources.pod_templates import DRIVER_CONTAINER, METRICS_PORT_NAME
from balanced_source_operator.resources.spark_application import spark_application
from balanced_source_operator.settings import Settings, settings_from
from balanced_source_spark.options import parse_options
from support.builders import identity, make_spec, spec_json

PORT = {"name": METRICS_PORT_NAME, "containerPort": 8090, "protocol": "TCP"}
KAFKA = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}


def manifest(build: Any = spark_application, *, port: int = 8090, **driver: Any) -> dict[str, Any]:
    application = spec_json()["application"]
    spec = make_spec(application={**application, "driver": driver})
    made: dict[str, Any] = build(
        identity(),
        spec.application,
        name="orders-1",
        parallelism=1,
        secrets=(),
        conf={},
        metrics_port=port,
    )
    return made


def template(container: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": DRIVER_CONTAINER, **container}]}}


def container(manifest: dict[str, Any]) -> dict[str, Any]:
    spec = manifest["spec"]
    pod = spec["driver"]["template"] if "driver" in spec else spec["driverSpec"]["podTemplateSpec"]
    (found,) = pod["spec"]["containers"]
    return dict(found)


@pytest.mark.parametrize("build", [spark_application, apache_application])
def test_the_driver_gets_its_port_and_the_pod_names_it(build: Any) -> None:
    ours = container(manifest(build))

    assert ours["ports"] == [PORT]
    assert {"name": document.METRICS_PORT, "value": "8090"} in ours["env"]


def test_executors_have_no_port() -> None:
    executor = manifest()["spec"]["executor"]["template"]["spec"]["containers"][0]

    assert "ports" not in executor


def test_without_a_port_the_environment_names_none() -> None:
    ours = container(manifest(port=0))

    assert "ports" not in ours
    assert document.METRICS_PORT not in {variable["name"] for variable in ours["env"]}


def test_running_applications_are_recognised_whatever_the_port() -> None:
    """An upgrade that brings the port, or a chart that changes it, restarts nothing."""
    annotations = [manifest(port=port)["metadata"]["annotations"] for port in (0, 8090, 9400)]

    assert annotations[0] == annotations[1] == annotations[2]


def test_a_port_of_the_users_template_stays() -> None:
    given = {
        "env": [{"name": document.METRICS_PORT, "value": "9400"}],
        "ports": [{"name": METRICS_PORT_NAME, "containerPort": 9400}],
    }

    ours = container(manifest(template=template(given)))

    assert ours["ports"] == given["ports"]
    values = [v["value"] for v in ours["env"] if v["name"] == document.METRICS_PORT]
    assert values == ["9400"]


def test_a_port_that_another_name_has_is_not_declared_twice() -> None:
    given = {"ports": [{"name": "web", "containerPort": 8090}]}

    assert container(manifest(template=template(given)))["ports"] == given["ports"]


def test_the_written_port_is_the_one_that_the_driver_reads() -> None:
    told = DriverEnvironment(name="orders", namespace="n", uid="u", metrics_port=8090)

    assert from_variables(to_variables(told)) == told
    silent = DriverEnvironment(name="orders", namespace="n", uid="u")
    assert document.METRICS_PORT not in to_variables(silent)


@pytest.mark.parametrize("text", ["x", "-1", "70000", "8_090", "٣"])
def test_an_invalid_port_is_an_error_that_names_the_variable(text: str) -> None:
    with pytest.raises(CorruptDocumentError, match=document.METRICS_PORT):
        document.port_of({document.METRICS_PORT: text})


@pytest.mark.parametrize(
    ("options", "variable", "port"),
    [
        ({"source": "orders"}, "8090", 8090),
        ({"source": "orders"}, "0", None),
        ({"source": "orders"}, "", None),
        ({"source": "orders", "metricsPort": "9400"}, "8090", 9400),
        (KAFKA, "8090", None),
        ({**KAFKA, "metricsPort": "9400"}, "8090", 9400),
    ],
)
def test_a_query_serves_where_its_option_or_the_operator_says(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str], variable: str, port: int | None
) -> None:
    """A query that reads no source of the operator has nothing to do with its port."""
    monkeypatch.setenv(document.METRICS_PORT, variable)

    assert parse_options(options).metrics_port == port


def test_the_operator_has_a_port_by_default_and_can_have_none() -> None:
    assert Settings().driver_metrics_port == 8090
    assert settings_from({"BALANCED_SOURCE_DRIVER_METRICS_PORT": "0"}).driver_metrics_port == 0
