"""The application that Apache's operator is given, against the fields that its definition has."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from balanced_source_operator.resources.apache_application import apache_application
from balanced_source_operator.resources.kinds import NAME_LABEL
from balanced_source_operator.resources.spark_application import application_hash, spark_application
from balanced_source_operator.spec.application import Provider
from balanced_source_operator.validation.structure import check
from support.apache_operator import program_of, settings_of
from support.apache_samples import MINIMAL, REAL, RICH, build
from support.builders import identity, make_spec

needs_real = pytest.mark.skipif(
    not REAL, reason="BALANCED_SOURCE_APACHE_CRD does not name Apache's CRD"
)


@cache
def schema(path: Path | str) -> Mapping[str, Any]:
    versions = yaml.load(Path(path).read_text(), Loader=yaml.CSafeLoader)["spec"]["versions"]
    found: Mapping[str, Any] = next(v for v in versions if v["name"] == "v1")["schema"][
        "openAPIV3Schema"
    ]
    return found


@pytest.mark.parametrize("changes", [{}, RICH])
def test_it_uses_only_fields_that_exist(changes: dict[str, Any]) -> None:
    manifest = build(**changes)
    assert list(check({"spec": manifest["spec"]}, schema(MINIMAL))) == []


@needs_real
@pytest.mark.parametrize("changes", [{}, RICH])
def test_it_uses_only_fields_that_exist_in_the_real_definition(changes: dict[str, Any]) -> None:
    assert list(check({"spec": build(**changes)["spec"]}, schema(REAL))) == []


@needs_real
def test_the_fields_that_we_know_are_those_of_the_real_definition() -> None:
    assert list(differences(schema(MINIMAL), schema(REAL), "")) == []


def differences(ours: Mapping[str, Any], real: Mapping[str, Any], at: str) -> Iterator[str]:
    for key in ("type", "default"):
        if ours.get(key) != real.get(key):
            yield f"{at}: {key} is {real.get(key)}"
    for key in ("enum", "required"):
        if sorted(ours.get(key, ())) != sorted(real.get(key, ())):
            yield f"{at}: {key} is {real.get(key)}"
    for name, field in ours.get("properties", {}).items():
        if name not in real.get("properties", {}):
            yield f"{at}.{name} does not exist"
        else:
            yield from differences(field, real["properties"][name], f"{at}.{name}")
    for key in ("items", "additionalProperties"):
        if key in ours:
            yield from differences(ours[key], real.get(key, {}), f"{at}[]")


def test_a_difference_between_two_definitions_is_found() -> None:
    """So that the test above can fail."""
    changed = {**schema(MINIMAL), "properties": {"spec": {"type": "object"}}}
    assert list(differences(schema(MINIMAL), changed, ""))


def test_fields_of_the_spec_become_spark_settings_and_win_over_them() -> None:
    conf = build(**RICH)["spec"]["sparkConf"]
    expected = {
        "spark.kubernetes.container.image": "balanced-source/spark:4.2.0",
        "spark.kubernetes.container.image.pullPolicy": "IfNotPresent",
        "spark.kubernetes.container.image.pullSecrets": "registry",
        "spark.kubernetes.authenticate.driver.serviceAccountName": "reader",
        "spark.driver.cores": "2",
        "spark.driver.memory": "3g",
        "spark.executor.cores": "2",
        "spark.executor.memory": "5g",
        "spark.executor.instances": "2",
        f"spark.kubernetes.driver.label.{NAME_LABEL}": "orders",
        f"spark.kubernetes.executor.label.{NAME_LABEL}": "orders",
        "spark.sql.shuffle.partitions": "7",
        "spark.ui.enabled": "false",
        "spark.python.unix.domain.socket.enabled": "true",
    }
    assert expected.items() <= conf.items()


def test_sparks_own_container_is_named_because_a_template_may_begin_with_another() -> None:
    spec = build(**RICH)["spec"]
    names = [c["name"] for c in spec["executorSpec"]["podTemplateSpec"]["spec"]["containers"]]
    assert spec["sparkConf"]["spark.kubernetes.executor.podTemplateContainerName"] in names
    assert (
        spec["sparkConf"]["spark.kubernetes.driver.podTemplateContainerName"]
        == "spark-kubernetes-driver"
    )


def test_the_program_is_found_by_the_operator() -> None:
    manifest = build(mainApplicationFile="local:///opt/app/main.py", arguments=["a", "b"])
    assert program_of(manifest) == ("local:///opt/app/main.py", [])
    assert manifest["spec"]["driverArgs"] == ["a", "b"]


def test_settings_of_the_operator_change_no_user_setting() -> None:
    assert settings_of(build())["spark.kubernetes.executor.useDriverPodIP"] == "true"


@pytest.mark.parametrize("changes", [{}, {"max_failures": 3}, {"is_bounded": True}])
def test_a_failed_driver_stays_with_its_log_and_nothing_ends_one_that_waits(
    changes: dict[str, Any],
) -> None:
    """With a restart policy Apache's operator deletes the pod before each next attempt."""
    tolerations = build(**changes)["spec"]["applicationTolerations"]

    assert tolerations["restartConfig"] == {"restartPolicy": "Never"}
    assert tolerations["resourceRetainPolicy"] == "OnFailure"
    limits = tolerations["applicationTimeoutConfig"]
    forced = limits.pop("forceTerminationGracePeriodMillis")
    assert forced > 365 * 24 * 3600 * 1000, "it would not wait for the process of a driver to end"
    assert set(limits.values()) == {0}
    assert len(limits) == 3


def test_executors_that_ended_are_deleted_unless_the_user_wants_them() -> None:
    key = "spark.kubernetes.executor.deleteOnTermination"
    assert settings_of(build())[key] == "true"
    assert settings_of(build(sparkConf={key: "false"}))[key] == "false"


def test_both_operators_get_the_same_templates_and_annotations() -> None:
    spec = make_spec(
        application=make_spec().application.model_dump(
            mode="json", by_alias=True, exclude_unset=True
        )
    )
    arguments: dict[str, Any] = {
        "name": "orders-1",
        "parallelism": 2,
        "secrets": ("login",),
        "conf": {},
    }
    ours = apache_application(identity(), spec.application, **arguments)
    kubeflow = spark_application(identity(), spec.application, **arguments)
    assert ours["metadata"] == kubeflow["metadata"]
    for role in ("driver", "executor"):
        assert ours["spec"][f"{role}Spec"]["podTemplateSpec"] == kubeflow["spec"][role]["template"]


def test_the_operator_that_was_the_only_one_is_not_a_part_of_the_hash_so_nothing_restarts() -> None:
    plain = make_spec().application
    hashes = {
        application_hash(identity(), plain.model_copy(update={"provider": provider}), conf={})
        for provider in Provider
    }
    assert len(hashes) == 2, "a change of the operator replaces the application"
    assert "provider" not in plain.model_dump(mode="json", exclude_defaults=True)
    assert application_hash(identity(), plain, conf={}) in hashes
