"""Messages of drivers link to the team's copy of the documentation."""

from typing import Any

import pytest

from balanced_source.documents.environment import DOCUMENTATION, from_variables
from balanced_source_operator.resources.apache_application import apache_application
from balanced_source_operator.resources.spark_application import spark_application
from balanced_source_operator.settings import settings_from
from support.builders import identity, make_spec

ADDRESS = "https://wiki.test/bs"


def manifest(build: Any, address: str) -> dict[str, Any]:
    made: dict[str, Any] = build(
        identity(),
        make_spec().application,
        name="orders-1",
        parallelism=1,
        secrets=(),
        conf={},
        documentation_url=address,
    )
    return made


def variables(manifest: dict[str, Any]) -> dict[str, str]:
    spec = manifest["spec"]
    pod = spec["driver"]["template"] if "driver" in spec else spec["driverSpec"]["podTemplateSpec"]
    (container,) = pod["spec"]["containers"]
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}


@pytest.mark.parametrize("build", [spark_application, apache_application])
def test_the_driver_is_told_the_address(build: Any) -> None:
    found = variables(manifest(build, ADDRESS))

    assert found[DOCUMENTATION] == ADDRESS
    assert from_variables(found).documentation_url == ADDRESS
    assert DOCUMENTATION not in variables(manifest(build, ""))


def test_running_applications_are_recognised_whatever_the_address() -> None:
    """A chart that changes it restarts nothing."""
    with_it, without = (
        manifest(spark_application, address)["metadata"]["annotations"] for address in (ADDRESS, "")
    )

    assert with_it == without


def test_the_operator_reads_it_from_its_environment() -> None:
    assert settings_from({DOCUMENTATION: ADDRESS}).documentation_url == ADDRESS
    assert settings_from({}).documentation_url == ""
