"""The CustomResourceDefinition, generated from the models (``make generate``)."""

from collections.abc import Sequence
from typing import Any, Final

import yaml
from pydantic import BaseModel

from balanced_source_operator.contract.base import rule
from balanced_source_operator.contract.choice import choice_of
from balanced_source_operator.contract.half import half_of
from balanced_source_operator.spec import GROUP, KIND, PLURAL, VERSION, BalancedSourceSpec, Status
from balanced_source_operator.spec.source import BRANCHES

_COLUMNS = (
    ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status', 0),
    ("Readers", "integer", ".status.readers", 0),
    ("Splits", "integer", ".status.splits", 0),
    ("Epoch", "integer", ".status.epoch", 0),
    ("Lag", "integer", ".status.lag", 0),
    ("Age", "date", ".metadata.creationTimestamp", 0),
    ("Desired", "integer", ".spec.parallelism", 1),
    ("Application", "string", ".status.application.state", 1),
    ("Hosts", "string", ".status.runningHosts", 1),
    ("Message", "string", ".status.message", 1),
)

_RULES: Final = "x-kubernetes-validations"
_LIST_TYPE: Final = "x-kubernetes-list-type"

_NAME_RULE = rule(
    "self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",
    "the name begins pod and ConfigMap names: at most 40 lower case letters, digits and '-',"
    " beginning with a letter",
)


def custom_resource_definition(connectors: Sequence[str] = ()) -> dict[str, Any]:
    """Return the CRD as a manifest.

    Args:
        connectors: kinds that get a branch of their own in ``spec.source``, besides those of this
            project.

    Raises:
        ConnectorError: one of them is not installed, or is broken.
    """
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["bsrc"],
                "categories": ["streaming"],
            },
            "versions": [_version(connectors)],
        },
    }


def _version(connectors: Sequence[str]) -> dict[str, Any]:
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.parallelism",
                "statusReplicasPath": ".status.readers",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {
                "name": name,
                "type": kind,
                "jsonPath": path,
                **({"priority": priority} if priority else {}),
            }
            for name, kind, path, priority in _COLUMNS
        ],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "description": (
                    "A streaming source whose splits stay evenly spread over the readers of Spark."
                ),
                "required": ["spec"],
                "x-kubernetes-validations": [_NAME_RULE],
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object"},
                    "spec": _spec(connectors),
                    "status": structural_schema(Status),
                },
            }
        },
    }


def _spec(connectors: Sequence[str]) -> dict[str, Any]:
    schema = structural_schema(BalancedSourceSpec)
    if connectors:
        halves = {**BRANCHES, **{kind: half_of(kind) for kind in connectors}}
        description = schema["properties"]["source"]["description"]
        schema["properties"]["source"] = {
            **structural_schema(choice_of(halves)),
            "description": description,
        }
    return schema


def structural_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The model's JSON schema in the form that Kubernetes calls structural.

    Inlined, typed, without unions.
    """
    schema = model.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs", {})
    structural: dict[str, Any] = _structural(schema, definitions)
    return _with_usable_rules(structural, has_former=True)


def _structural(schema: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_structural(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    schema = _without_pattern_keys(
        _resolved(_without_null(_resolved(schema, definitions)), definitions)
    )
    converted = {
        key: _converted(key, value, definitions)
        for key, value in schema.items()
        if not _is_left_out(key, value)
    }
    return _ordered(_as_object(converted))


def _with_usable_rules(schema: dict[str, Any], *, has_former: bool) -> dict[str, Any]:
    """Leave out the rules that compare with a former value where the API server knows none.

    It refuses a CRD with such rules for items of lists, unless the items have keys. The operator
    checks the same.
    """
    usable = dict(schema)
    if not has_former and (rules := usable.pop(_RULES, None)):
        kept = [rule for rule in rules if "oldSelf" not in rule["rule"]]
        usable |= {_RULES: kept} if kept else {}
    for name, value in schema.get("properties", {}).items():
        checked = _with_usable_rules(value, has_former=has_former)
        usable["properties"] = {**usable["properties"], name: checked}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            keeps = has_former and (key != "items" or schema.get(_LIST_TYPE) == "map")
            usable[key] = _with_usable_rules(schema[key], has_former=keeps)
    return usable


def _is_left_out(key: str, value: Any) -> bool:
    """Names of classes, ``extra="forbid"`` (pruning does that), and what a CRD may not say."""
    if key in ("title", "additionalProperties") and not isinstance(value, dict):
        return True
    return key == "propertyNames" or (key == "default" and value is None)


def _converted(key: str, value: Any, definitions: dict[str, Any]) -> Any:
    match key:
        case "properties":
            return {name: _structural(item, definitions) for name, item in value.items()}
        case "description":
            return " ".join(value.split())
        case "default":
            return _without_absent(value)
        case "enum" | "x-kubernetes-validations":
            return value
        case _:
            return _structural(value, definitions)


def _without_pattern_keys(schema: dict[str, Any]) -> dict[str, Any]:
    """A CRD has no patterns for keys, and rules for all of them would cost too much.

    The operator checks them.
    """
    if "patternProperties" not in schema:
        return schema
    rest = {key: value for key, value in schema.items() if key != "patternProperties"}
    (values,) = schema["patternProperties"].values()
    return {**rest, "additionalProperties": values}


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    target = definitions[reference.rsplit("/", 1)[1]]
    return {**target, **{key: value for key, value in schema.items() if key != "$ref"}}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """``X | None`` means that the field may be absent, not that it may be null."""
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if "anyOf" not in schema:
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**options[0], **rest}


def _without_absent(default: Any) -> Any:
    """A default as a user would write it: absent fields are absent, not null."""
    if not isinstance(default, dict):
        return default
    return {key: _without_absent(value) for key, value in default.items() if value is not None}


def _as_object(schema: dict[str, Any]) -> dict[str, Any]:
    """Limits of maps are called otherwise in JSON schema."""
    if "x-kubernetes-preserve-unknown-fields" in schema:
        schema.pop("additionalProperties", None)
    return schema


def _ordered(schema: dict[str, Any]) -> dict[str, Any]:
    """Description and type first: that is how people read it."""
    first = [key for key in ("description", "type") if key in schema]
    return {key: schema[key] for key in (*first, *(k for k in schema if k not in first))}


def to_yaml(manifest: dict[str, Any]) -> str:
    """A manifest as YAML, in the order in which it was built."""
    return yaml.dump(manifest, Dumper=_Plain, sort_keys=False, width=120, allow_unicode=True)


class _Plain(yaml.SafeDumper):
    """Writes repeated content repeatedly: people read this, and not all readers know aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
