"""The kubelet keeps the end of a failed driver's output, unless the user says otherwise."""

from typing import Any

import pytest

from balanced_source_operator.resources.apache_application import apache_application
from balanced_source_operator.resources.spark_application import spark_application
from support.builders import identity, make_spec, spec_json

POLICY = "terminationMessagePolicy"


def containers(build: Any, part: str, **driver: Any) -> list[dict[str, Any]]:
    spec = make_spec(application={**spec_json()["application"], "driver": driver})
    made = build(identity(), spec.application, name="orders-1", parallelism=1, secrets=(), conf={})[
        "spec"
    ]
    pod = made[part]["template"] if part in made else made[f"{part}Spec"]["podTemplateSpec"]
    found: list[dict[str, Any]] = pod["spec"]["containers"]
    return found


@pytest.mark.parametrize("build", [spark_application, apache_application])
def test_a_driver_leaves_the_end_of_its_output(build: Any) -> None:
    (driver,) = containers(build, "driver")
    (executor,) = containers(build, "executor")

    assert driver[POLICY] == "FallbackToLogsOnError"
    assert POLICY not in executor


@pytest.mark.parametrize("build", [spark_application, apache_application])
def test_the_policy_of_the_template_stays(build: Any) -> None:
    chosen = {"name": "spark-kubernetes-driver", POLICY: "File"}
    (driver,) = containers(build, "driver", template={"spec": {"containers": [chosen]}})

    assert driver[POLICY] == "File"
