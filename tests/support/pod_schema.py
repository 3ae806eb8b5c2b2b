"""The pod template of Kubernetes as the operator checks it, made from what an API server publishes.

``python -m support.pod_schema`` starts the testbed's API server and writes the file;
`tests/contract/kubernetes` compares it with that server.
"""

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from balanced_source_operator.spec.pod_template import SCHEMA_FILE
from testbed.control_plane import ControlPlane

ROOT: Final = "io.k8s.api.core.v1.PodTemplateSpec"
_PREFIX: Final = "#/components/schemas/"
_SPECIAL: Final = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intOrString",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "any",
}


def published(control_plane: ControlPlane) -> dict[str, dict[str, str]]:
    """Returns type → field → kind of value, for everything that a pod template may hold."""
    document = json.loads(control_plane.kubectl("get", "--raw", "/openapi/v3/api/v1"))
    return compact(document["components"]["schemas"])


def compact(schemas: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Returns the part that a pod template needs."""
    found: dict[str, dict[str, str]] = {}
    todo = [ROOT]
    while todo:
        name = todo.pop()
        if _short(name) in found:
            continue
        fields = schemas[name].get("properties", {})
        found[_short(name)] = {field: _kind(value, todo) for field, value in sorted(fields.items())}
    return dict(sorted(found.items()))


def _kind(schema: Mapping[str, Any], todo: list[str]) -> str:
    """Returns the kind of a value: a word, a type, ``[kind]`` for lists, ``{kind}`` for maps."""
    reference = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf", ())), None)
    if reference is not None:
        name = reference.removeprefix(_PREFIX)
        if name in _SPECIAL:
            return _SPECIAL[name]
        todo.append(name)
        return _short(name)
    match schema["type"]:
        case "array":
            return f"[{_kind(schema['items'], todo)}]"
        case "object":
            return f"{{{_kind(schema['additionalProperties'], todo)}}}"
        case "integer":
            return str(schema.get("format", "int64"))
        case kind:
            return str(kind)


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def to_text(schema: Mapping[str, Mapping[str, str]]) -> str:
    """Returns the content of the file: one type per line."""
    lines = [f'  "{name}": {json.dumps(fields)}' for name, fields in schema.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder)) as started:
        SCHEMA_FILE.write_text(to_text(published(started)), encoding="utf-8")
    sys.stderr.write(f"{SCHEMA_FILE} written\n")
