"""No string of a spec breaks out of the URL, path or command line that it becomes part of."""

import dataclasses
import enum
import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from balanced_source.errors import ConnectorError, InvalidSpecError
from balanced_source_operator.controller.translate import reader_options
from balanced_source_operator.kube.port import object_path
from balanced_source_operator.resources.access import role_binding
from balanced_source_operator.resources.kinds import CONFIG_MAP, SECRET, SERVICE_ACCOUNT
from balanced_source_operator.resources.pod_templates import SECRETS_DIR
from balanced_source_operator.resources.spark_application import spark_application
from balanced_source_operator.spec import BalancedSourceSpec, parse_spec
from balanced_source_spark.application import described, source_options
from balanced_source_spark.options import parse_options
from support.builders import identity, secrets_of, source_of
from support.hostile import (
    FROM_CONFIG_MAP,
    FULL,
    FULL_AZURE,
    FULL_FILES,
    FULL_GCS,
    FULL_HYBRID,
    FULL_HYBRID_BY_TIME,
    FULL_KINESIS,
    HOSTILE,
    KEY,
    Path,
    dotted,
    model_strings,
    replaced,
    strings,
)

_COLUMN = "the name of a column, compared with those of Parquet files"
DATA = {
    "application.pipeline.acceptCheckpointOf": (
        "namespace and name, compared with the ones in the offset log"
    ),
    "source.kafka.clusters.properties": (
        "a value of librdkafka, which never reads it as a path of the operator"
    ),
    "source.kafka.clusters.startingOffsets.group": "sent to brokers in Kafka's protocol",
    "source.kafka.startingOffsets.group": "sent to brokers in Kafka's protocol",
    "source.kafka.stoppingOffsets.group": "sent to brokers in Kafka's protocol",
    "source.kafka.commitGroup": "sent to brokers in Kafka's protocol",
    "source.kafka.subscription.topicPattern": "a pattern, compared with names of topics",
    "source.kafka.subscription.excludePattern": "a pattern, compared with names of topics",
    "source.kafka.subscription.streams": "compared with keys of the metadata",
    "source.kafka.subscription.streamPattern": "a pattern, compared with keys of the metadata",
    "application.pipeline.sink.options": (
        "an option of Spark's writer, as JSON in an environment variable"
    ),
    "application.pipeline.sink.partitionBy": "a column, as JSON in an environment variable",
    "application.pipeline.checkpointLocation": "a path or URL that the user's own driver opens",
    "source.files.paths": "a pattern that the driver lists, in the source's own volumes or buckets",
    "source.files.schema": "DDL that Spark parses in the driver",
    "source.files.records.corruptColumn": "the name of a column, compared with those of the schema",
    "source.files.records.separator": "one character of a CSV file",
    "source.files.records.quote": "one character of a CSV file",
    "source.files.records.escape": "one character of a CSV file",
    "source.files.records.nullValue": "compared with values of a CSV file",
    "source.startAfter.time": _COLUMN,
    "source.startAfter.offsets.topic": _COLUMN,
    "source.startAfter.offsets.partition": _COLUMN,
    "source.startAfter.offsets.offset": _COLUMN,
    "source.startAfter.offsets.topicIds": "compared with names and ids of topics",
    "application.arguments": "arguments of the user's program; they follow it on the command line",
    "application.sparkConf": (
        "the value behind `--conf key=`, one argument of a command without a shell"
    ),
    "application.mainApplicationFile": (
        "a path or URL of the user's program; never an option, never with blanks"
    ),
    "application.image": "a reference that the node's container runtime parses",
}
"""Strings that may hold (almost) anything, each with the reason: it arrives as it was written, and
only there."""

_TOPIC = "compared with names of topics, or sent to brokers in Kafka's protocol"
NAMES = {
    "source.kafka.clusters.bootstrapServers": "addresses that librdkafka resolves",
    "source.kafka.clusters.properties": "names of properties, looked up by librdkafka",
    "source.kafka.clusters.stoppingOffsets.offsets": _TOPIC,
    "source.kafka.startingOffsets.offsets": _TOPIC,
    "source.kafka.startingOffsets.topics.topic": _TOPIC,
    "source.kafka.startingOffsets.topics.timestamps": _TOPIC,
    "source.kafka.stoppingOffsets.topics.topic": _TOPIC,
    "source.kafka.stoppingOffsets.topics.timestamps": _TOPIC,
    "source.kafka.subscription.topics": _TOPIC,
    "source.kafka.subscription.partitions.topic": _TOPIC,
    "source.kinesis.streams": "sent to the service as JSON",
    "source.kinesis.startingPosition.sequenceNumbers": "compared with names of streams and shards",
    "source.kafka.clustersFrom.configMapRef.key": "looked up in a map; a file name in local mode",
}
"""Strings of letters, digits, `.`, `_`, `-` and `,`, which are neither part of a URL nor an
argument of a command."""

METADATA = yaml.safe_dump(
    {"clusters": FULL["source"]["kafka"]["clusters"], "streams": {"orders": {"main": ["orders"]}}}
)
DNS = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")

FULL_FROM_CONFIG_MAP = {
    **FULL,
    "source": {
        "kafka": {"subscription": FULL["source"]["kafka"]["subscription"], **FROM_CONFIG_MAP}
    },
}


def test_the_example_has_every_string_that_the_models_have() -> None:
    """A new field of the spec must be added to the example, and so to the tests below."""
    covered = {
        dotted(path)
        for manifest in (
            FULL,
            FULL_FROM_CONFIG_MAP,
            FULL_FILES,
            FULL_GCS,
            FULL_AZURE,
            FULL_KINESIS,
            FULL_HYBRID,
            FULL_HYBRID_BY_TIME,
        )
        for path in strings(manifest)
    }
    known = set(model_strings(BalancedSourceSpec))

    same_as = {"source.kafka.clusters.startingOffsets", "source.kafka.clusters.stoppingOffsets"}
    same_as |= {"source.kafka.startingOffsets.topics", "source.kafka.stoppingOffsets.topics"}
    same_as |= {"source.kafka.startingOffsets", "source.kafka.stoppingOffsets"}
    templates = {
        "application.driver.template",
        "application.executor.template",
    }  # no strings, but pods: checked as such
    # A part has the models of `spec.source`, and is made into a source by the same code.
    same_as |= {f"source.hybrid.{kind}" for kind in ("files", "kafka", "custom")}
    # see `test_a_hostile_connector_is_refused`
    templates |= {"source.custom.connector", "source.custom.config"}
    missing = {
        path
        for path in known - covered - templates
        if not path.startswith(tuple(f"{same}." for same in same_as))
    }
    assert not missing


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_connector_is_refused(value: str) -> None:
    """What is in `config` is checked by the connector: it is code of whoever built the image."""
    with pytest.raises((InvalidSpecError, ConnectorError)) as refused:
        source_of(
            parse_spec(
                {**FULL, "source": {"custom": {"connector": value, "config": {value: value}}}}
            ),
            METADATA,
        )
    check_sentence(str(refused.value))


def cases(manifest: Mapping[str, Any], under: Path = ()) -> list[Any]:
    paths = [path for path in strings(manifest) if path[: len(under)] == under]
    return [pytest.param(path, id=".".join(map(str, path))) for path in paths]


@pytest.mark.parametrize("path", cases(FULL))
def test_a_hostile_string_is_refused_or_stays_data(path: Path) -> None:
    for value in HOSTILE:
        check(replaced(FULL, path, value), path, value)


@pytest.mark.parametrize("path", cases(FULL_FROM_CONFIG_MAP, ("source", "kafka", "clustersFrom")))
def test_the_reference_to_metadata_is_refused_or_stays_data(path: Path) -> None:
    for value in HOSTILE:
        check(replaced(FULL_FROM_CONFIG_MAP, path, value), path, value)


@pytest.mark.parametrize("manifest", [FULL_FILES, FULL_GCS, FULL_AZURE])
def test_a_hostile_string_of_files_is_refused_or_stays_data(manifest: Mapping[str, Any]) -> None:
    for path in strings(manifest):
        if path[:2] == ("source", "files"):
            for value in HOSTILE:
                check(replaced(manifest, path, value), path, value)


@pytest.mark.parametrize("path", cases(FULL_KINESIS, ("source", "kinesis")))
def test_a_hostile_string_of_kinesis_is_refused_or_stays_data(path: Path) -> None:
    for value in HOSTILE:
        check(replaced(FULL_KINESIS, path, value), path, value)


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        pytest.param(manifest, case.values[0], id=f"{name}-{case.id}")
        for name, manifest in (("offsets", FULL_HYBRID), ("time", FULL_HYBRID_BY_TIME))
        for case in cases(manifest, ("source", "hybrid"))
    ],
)
def test_a_hostile_string_of_a_part_is_refused_or_stays_data(
    manifest: dict[str, Any], path: Path
) -> None:
    for value in HOSTILE:
        check(replaced(manifest, path, value), path, value)


METADATA_STRINGS = {
    "clusters": FULL["source"]["kafka"]["clusters"],
    "streams": {"orders": {"main": ["orders"]}},
}


@pytest.mark.parametrize("path", cases(METADATA_STRINGS))
def test_hostile_metadata_is_refused_or_stays_data(path: Path) -> None:
    """Someone else may write the ConfigMap of `clustersFrom`."""
    spec = parse_spec(FULL_FROM_CONFIG_MAP)
    for value in HOSTILE:
        text = yaml.safe_dump(replaced(METADATA_STRINGS, path, value))
        try:
            source = source_of(spec, text)
        except InvalidSpecError as error:
            check_sentence(str(error))
            continue
        for name in secrets_of(source):
            assert DNS.match(name)


def check(manifest: Mapping[str, Any], path: Path, value: str) -> None:
    try:
        spec = parse_spec(manifest)
        source = source_of(spec, METADATA)
    except InvalidSpecError as error:
        check_sentence(str(error))
        return
    reached = manifest_of(spec, source)
    check_urls(spec, source)
    check_pods(reached)
    check_driver(reached)
    # A part is a source as it stands in `spec.source`.
    field, is_key = dotted(path).replace("source.hybrid.", "source."), path[-1] == KEY
    if field in NAMES and (is_key or field not in DATA):
        assert re.fullmatch(r"(?!\.{1,2}$)[A-Za-z0-9._,-]+", value), f"{field} accepts {value!r}"
        return
    assert field in DATA, f"{field} accepts {value!r}: refuse it, or say in DATA where it goes"
    everywhere = set(flat(source)) | set(flat(reached))
    assert value in everywhere or path[:3] == ("source", "kafka", "subscription"), (
        f"{field}: {value!r} was changed"
    )


def check_sentence(text: str) -> None:
    assert 20 < len(text) < 1000
    assert text.isprintable(), "control characters never reach a log"


def manifest_of(spec: BalancedSourceSpec, source: Any) -> dict[str, Any]:
    secrets = secrets_of(source)
    return spark_application(
        identity(),
        spec.application,
        name="orders-1",
        parallelism=2,
        secrets=secrets,
        conf={},
        connector=spec.source.kind,
        options=reader_options(spec),
    )


def check_urls(spec: BalancedSourceSpec, source: Any) -> None:
    """Every URL is that of one object in the source's own namespace."""
    names = [(SECRET, name) for name in secrets_of(source)]
    names.append((SERVICE_ACCOUNT, spec.application.service_account))
    if spec.source.kafka is not None and spec.source.kafka.clusters_from is not None:
        names.append((CONFIG_MAP, spec.source.kafka.clusters_from.config_map_ref.name))
    for kind, name in names:
        path = object_path(kind, "default", name)
        assert (
            posixpath.normpath(path) == path == f"/api/v1/namespaces/default/{kind.plural}/{name}"
        )
        assert DNS.match(name)
    assert DNS.match(
        role_binding(identity(), [spec.application.service_account])["subjects"][0]["name"]
    )


def check_pods(manifest: Mapping[str, Any]) -> None:
    """Mounts stay in their folder, names are names, the program is no option."""
    for role in ("driver", "executor"):
        pod = manifest["spec"][role]["template"]["spec"]
        mounts = [
            mount["mountPath"] for c in pod["containers"] for mount in c.get("volumeMounts", [])
        ]
        for path in mounts:
            assert posixpath.normpath(path) == path
            assert posixpath.dirname(path) == SECRETS_DIR
        for volume in pod.get("volumes", []):
            assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", volume["name"])
            assert len(volume["name"]) <= 63
    assert not manifest["spec"]["mainApplicationFile"].startswith("-")
    assert re.fullmatch(r"[^\s]+", manifest["spec"]["mainApplicationFile"])
    assert re.fullmatch(r"[A-Za-z0-9._:/@-]+", manifest["spec"]["image"])
    for key, value in manifest["spec"]["sparkConf"].items():
        assert re.fullmatch(r"spark\.[A-Za-z0-9._/$-]+", key)
        assert "\x00" not in value
    assert not any("\x00" in argument for argument in manifest["spec"]["arguments"])
    for secret in manifest["spec"].get("imagePullSecrets", []):
        assert DNS.match(secret)


def check_driver(manifest: Mapping[str, Any]) -> None:
    """What the driver does with its environment."""
    containers = manifest["spec"]["driver"]["template"]["spec"]["containers"]
    environment = {e["name"]: e.get("value", "") for e in containers[0]["env"]}
    if "BALANCED_SOURCE_PIPELINE" in environment:
        told, pipeline = described(environment)
        options = parse_options(source_options(pipeline, told))
        assert (options.source, options.namespace) == ("orders", "default")


def flat(value: Any) -> Iterator[str]:
    """Yields all strings in a value, JSON in strings included."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from flat(getattr(value, field.name))
    elif isinstance(value, str):
        yield value.value if isinstance(value, enum.Enum) else value
        if value.startswith(("{", "[{")):
            yield from flat(json.loads(value))
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from flat(key)
            yield from flat(inner)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from flat(inner)
