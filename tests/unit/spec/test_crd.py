"""The CRD is generated, complete, and readable."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from balanced_source.connectors.kafka.properties import RESERVED
from balanced_source_operator.spec import BalancedSourceSpec, parse_spec
from balanced_source_operator.spec.crd import custom_resource_definition, to_yaml
from testbed.versions import CHECKOUT

CRD = CHECKOUT / "crds" / "balancedsource.io_balancedsources.yaml"
SCHEMA = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_the_committed_crd_is_what_the_models_generate() -> None:
    assert CRD.read_text() == to_yaml(custom_resource_definition()), "stale: run `make generate`"


def fields(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, value in schema.get("properties", {}).items():
        yield f"{path}.{name}", value
        yield from fields(value, f"{path}.{name}")
    if "items" in schema:
        yield from fields(schema["items"], f"{path}[]")


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        pytest.param(path, schema, id=path)
        for part in ("spec", "status")
        for path, schema in fields(SCHEMA["properties"][part], part)
    ],
)
def test_every_field_has_a_type_a_description_and_a_bound(
    path: str, schema: dict[str, Any]
) -> None:
    assert len(schema.get("description", "")) > 5, f"{path}: kubectl explain would say nothing"
    assert "type" in schema, f"{path}: a structural schema names every type"
    if not path.startswith("spec"):
        return
    if schema["type"] == "array":
        assert "maxItems" in schema, f"{path}: CEL needs bounded lists"
    if schema["type"] == "string":
        assert "maxLength" in schema or "enum" in schema, f"{path}: CEL needs bounded texts"


def test_reserved_properties_are_refused_by_name_with_their_reason() -> None:
    properties = SCHEMA["properties"]["spec"]["properties"]["source"]["properties"]["kafka"][
        "properties"
    ]
    rules = properties["clusters"]["items"]["properties"]["properties"]["x-kubernetes-validations"]
    messages = [rule["message"] for rule in rules]

    for name, reason in RESERVED.items():
        assert f"property {name} is reserved: {reason}" in messages


def test_names_columns_and_subresources_are_what_users_type() -> None:
    spec = custom_resource_definition()["spec"]
    version = spec["versions"][0]

    assert (spec["names"]["shortNames"], spec["names"]["categories"]) == (["bsrc"], ["streaming"])
    columns = [c["name"] for c in version["additionalPrinterColumns"] if not c.get("priority")]
    assert columns == ["Ready", "Readers", "Splits", "Epoch", "Lag", "Age"]
    assert version["subresources"]["scale"] == {
        "specReplicasPath": ".spec.parallelism",
        "statusReplicasPath": ".status.readers",
        "labelSelectorPath": ".status.selector",
    }


def test_the_example_is_valid() -> None:
    manifest = yaml.safe_load((CHECKOUT / "examples" / "orders.yaml").read_text())

    spec = parse_spec(manifest["spec"])

    assert isinstance(spec, BalancedSourceSpec)
    assert spec.parallelism == 2
