"""Templates that Kubernetes could not decode are rejected before any SparkApplication is made."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.resources.spark_application import spark_application
from balanced_source_operator.spec import parse_spec
from balanced_source_operator.spec.pod_template import ROOT, schema, wrong
from support.builders import identity, spec_json


def container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "spark-kubernetes-driver", **fields}]}}


def parsed(template: Any, role: str = "driver") -> Any:
    return parse_spec(
        spec_json(application={**spec_json()["application"], role: {"template": template}})
    )


@pytest.mark.parametrize("role", ["driver", "executor"])
@pytest.mark.parametrize(
    ("template", "says"),
    [
        (
            container(resources={"requests": {"cpu": "lots"}}),
            "requests.cpu must be a quantity such as 500m, 2 or 1Gi",
        ),
        (container(resources={"limits": {"memory": "1 Gi"}}), "limits.memory must be a quantity"),
        (container(resources={"limits": {"memory": True}}), "limits.memory must be a quantity"),
        (container(env={"A": "b"}), "spec.containers[0].env must be a list, not an object"),
        (container(env=[{"name": "A", "value": 1}]), "env[0].value must be text, not 1"),
        (container(env=[None]), "env[0] must be set, not null"),
        (container(ports=[{"containerPort": "http"}]), "containerPort must be a whole number"),
        (
            container(ports=[{"containerPort": 2**31}]),
            "containerPort must be a whole number of 32 bits",
        ),
        (container(livenessProbe={"httpGet": {"port": 1.5}}), "port must be a number or a text"),
        ({"spec": {"containers": {}}}, "spec.containers must be a list"),
        ({"spec": {"containers": ["a"]}}, "spec.containers[0] must be an object, not 'a'"),
        ({"spec": []}, "spec must be an object"),
        ({"spec": {"hostNetwork": "yes"}}, "spec.hostNetwork must be true or false, not 'yes'"),
        (
            {"spec": {"tolerations": [{"tolerationSeconds": 1.5}]}},
            "tolerationSeconds must be a whole number",
        ),
        (
            {"spec": {"volumes": [{"name": "a", "emptyDir": {"sizeLimit": "big"}}]}},
            "sizeLimit must be a quantity",
        ),
        ({"metadata": {"labels": {"a": 1}}}, "metadata.labels.a must be text, not 1"),
        ({"metadata": {"labels": {"a\nb": 1}}}, "metadata.labels.'a\\nb' must be text"),
        ({"metadata": {"creationTimestamp": "today"}}, "creationTimestamp must be a time"),
        ({"spec": {"overhead": {"cpu": "1,5"}}}, "overhead.cpu must be a quantity"),
    ],
)
def test_the_place_and_the_expected_value_are_named(role: str, template: Any, says: str) -> None:
    with pytest.raises(InvalidSpecError) as caught:
        parsed(template, role)

    assert f"spec.application.{role}.template" in str(caught.value)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "template",
    [
        {},
        {"spec": None},
        {"spec": {"containers": None}},
        container(env=None, volumeMounts=None, name=None),
        container(
            resources={
                "requests": {"cpu": 1, "memory": "1.5Gi"},
                "limits": {"cpu": "500m", "memory": "1e9"},
            }
        ),
        container(resources={"limits": {"cpu": 0.5}}),
        {"spec": {"terminationGracePeriodSeconds": 30, "aFieldOfNewerVersions": {"anything": [1]}}},
        {"metadata": {"annotations": {"a": "b"}, "creationTimestamp": "2026-01-31T12:00:00Z"}},
    ],
)
def test_everything_else_becomes_an_application(template: Any) -> None:
    spec = parsed(template)

    manifest = spark_application(
        identity(), spec.application, name="orders-1", parallelism=1, secrets=("kafka",), conf={}
    )

    assert not list(wrong(manifest["spec"]["driver"]["template"], ROOT, ""))


def test_the_schema_accepts_common_notations() -> None:
    assert schema()[ROOT] == {"metadata": "ObjectMeta", "spec": "PodSpec"}
    assert schema()["ResourceRequirements"]["limits"] == "{quantity}"
    assert schema()["EmptyDirVolumeSource"]["sizeLimit"] == "quantity"
    assert schema()["ContainerPort"]["containerPort"] == "int32"


names = st.sampled_from(
    ["spec", "metadata", "containers", "env", "name", "value", "resources", "limits", "labels"]
)
junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(names, junk, max_size=3))
def test_any_json_is_refused_in_words_or_becomes_an_application(template: dict[str, Any]) -> None:
    try:
        spec = parsed(template)
    except InvalidSpecError as error:
        told = str(error)
        assert told.isprintable()
        return
    spark_application(
        identity(), spec.application, name="orders-1", parallelism=1, secrets=("kafka",), conf={}
    )
