"""Specs and metadata of `clustersFrom`, from the operator to the options of the driver."""

import json
from typing import Any, Final

import yaml
from hypothesis import strategies as st

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.kafka.clusters import to_clusters
from balanced_source_operator.resources.spark_application import spark_application
from balanced_source_operator.spec import parse_spec
from balanced_source_operator.spec.crd import custom_resource_definition
from balanced_source_operator.spec.pod_template import ROOT, wrong
from balanced_source_spark.application import described, source_options
from balanced_source_spark.options import parse_options
from fuzz.judge import Judge, SilentError
from fuzz.values import Path, broken, places, put
from support.builders import identity, secrets_of, source_of
from support.hostile import FROM_CONFIG_MAP, FULL, FULL_FILES

SCHEMA: Final = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"][
    "properties"
]["spec"]
TEMPLATE: Final = {
    "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
    "spec": {
        "containers": [
            {
                "name": "spark-kubernetes-driver",
                "env": [{"name": "A", "value": "b"}],
                "ports": [{"containerPort": 8080}],
                "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                "livenessProbe": {"httpGet": {"port": "http", "path": "/"}},
            }
        ],
        "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}],
        "tolerations": [{"tolerationSeconds": 3}],
        "hostNetwork": False,
    },
}
CLUSTERS: Final = FULL["source"]["kafka"]["clusters"]
METADATA: Final = {"clusters": CLUSTERS, "streams": {"orders": {"main": ["orders"]}}}


def _examples() -> tuple[Any, ...]:
    """Specs that are valid: of Kafka, each with another subscription, and of files."""
    kafka = FULL["source"]["kafka"]
    subscription = kafka["subscription"]
    application = FULL["application"]
    templates = {"driver": {"template": TEMPLATE}, "executor": {"template": TEMPLATE}}
    chosen: list[dict[str, Any]] = [
        {name: subscription[name]} for name in ("topics", "topicPattern", "partitions")
    ]
    found = [{**FULL, "source": {"kafka": {**kafka, "subscription": one}}} for one in chosen]
    for one in ("streams", "streamPattern"):
        streams = {**FROM_CONFIG_MAP, "subscription": {one: subscription[one]}}
        found.append(
            {**FULL, "source": {"kafka": streams}, "application": {**application, **templates}}
        )
    return (*found, FULL_FILES)


EXAMPLES: Final = _examples()


def schema_at(path: Path) -> dict[str, Any]:
    """Returns the CRD's schema of a place; empty if it has none."""
    found: Any = SCHEMA
    for key in path:
        if not isinstance(found, dict):
            return {}
        found = found.get("items") if isinstance(key, int) else found.get("properties", {}).get(key)
    return found if isinstance(found, dict) else {}


def boundaries(schema: dict[str, Any]) -> list[Any]:
    """Returns the last values that a schema allows, and the first that it does not."""
    low, high = schema.get("minimum"), schema.get("maximum")
    numbers = [bound + step for bound in (low, high) if bound is not None for step in (-1, 0, 1)]
    texts = ["", *("a" * (schema["maxLength"] + step) for step in (0, 1) if "maxLength" in schema)]
    lists = [[], *([None] * (schema["maxItems"] + 1) for _ in (0,) if "maxItems" in schema)]
    of_type: dict[str, list[Any]] = {
        "integer": numbers,
        "number": numbers,
        "string": texts,
        "array": lists,
    }
    return [*of_type.get(schema.get("type", ""), []), *schema.get("enum", [])] or [None]


@st.composite
def specs(draw: st.DrawFn) -> Any:
    """Draws a spec: an example, at most one value at its schema's edge, and up to four changes."""
    value = draw(st.sampled_from(EXAMPLES))
    if draw(st.booleans()):
        path = draw(st.sampled_from(list(places(value))))
        value = put(value, path, draw(st.sampled_from(boundaries(schema_at(path)))))
    return draw(broken((value,)))


cases: Final = st.tuples(specs(), broken((METADATA,)) | st.text(max_size=30))


def check(case: Any, judge: Judge) -> None:
    """Does what the operator does with a spec, then what the driver does with its environment."""
    raw, metadata = case
    text = metadata if isinstance(metadata, str) else yaml.safe_dump(metadata)
    judge.try_(lambda: _everything(raw, text), {"spec": raw, "metadata": metadata})


def _everything(raw: Any, metadata: str) -> None:
    spec = parse_spec(raw)
    if spec.source.kafka is not None:
        to_clusters(spec.source.kafka, metadata, field="spec.source.kafka")
    source = source_of(spec, metadata)
    for secrets in ((), secrets_of(source)):
        manifest = spark_application(
            identity(),
            spec.application,
            name="orders-1",
            parallelism=spec.parallelism,
            secrets=secrets,
            conf={},
        )
    json.dumps(manifest, allow_nan=False)
    json.dumps(source.reader_settings(), allow_nan=False)
    for role in ("driver", "executor"):
        for place, expected, value in wrong(manifest["spec"][role]["template"], ROOT, ""):
            raise SilentError(f"{role}.template: {place} must be {expected}, not {value}")
    containers = manifest["spec"]["driver"]["template"]["spec"]["containers"]
    driver = next(c for c in containers if c.get("name") == "spark-kubernetes-driver")
    environment = {
        e["name"]: e.get("value")
        for e in driver["env"]
        if e.get("name", "").startswith("BALANCED_")
    }
    if "BALANCED_SOURCE_PIPELINE" in environment:
        try:
            told, pipeline = described(
                {name: value for name, value in environment.items() if value is not None}
            )
            parse_options(source_options(pipeline, told))
        except InvalidSpecError as error:
            raise SilentError(f"only the driver finds out: {error}") from error
