"""Secrets of sinks and of Spark come from mounted files; no object of the API server holds them."""

import re
from pathlib import Path
from typing import Any

import pytest

from balanced_source.documents.environment import DriverEnvironment
from balanced_source.documents.pipeline import Sink
from balanced_source.errors import InvalidSpecError
from balanced_source.redaction import redacted, redacted_text
from balanced_source.secret_keys import HOLDING, NAMING, holds_secret
from balanced_source_operator.resources.pod_templates import SECRETS_DIR
from balanced_source_operator.resources.spark_application import spark_application
from balanced_source_operator.spec import parse_spec
from balanced_source_operator.spec.crd import custom_resource_definition
from balanced_source_spark.application import sink_options
from balanced_source_spark.mounted_options import secret_settings
from support.builders import identity, make_spec, spec_json
from support.secret_names import (
    JAVA_PLAIN,
    JAVA_SECRETS,
    PLAIN_ARGUMENTS,
    PLAIN_KEYS,
    PLAIN_VARIABLES,
    SECRET_ARGUMENTS,
    SECRET_KEYS,
    SECRET_VARIABLES,
    SHORT_WORDS,
)


def application(**changes: Any) -> dict[str, Any]:
    return spec_json(application={**spec_json()["application"], **changes})


def pipeline(**sink: Any) -> dict[str, Any]:
    return {"checkpointLocation": "/c", "sink": {"format": "jdbc", **sink}}


def template(kind: str, **variable: Any) -> dict[str, Any]:
    """A pod template with a container whose second variable is this one."""
    container = {"name": "a", "env": [{"name": "A", "value": "b"}, variable]}
    return {"template": {"spec": {kind: [container]}}}


def driver(folder: Path, **told: Any) -> DriverEnvironment:
    return DriverEnvironment(name="orders", namespace="n", uid="u", secrets_dir=str(folder), **told)


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_keys_that_hold_secrets_are_refused_with_the_way_out(key: str) -> None:
    with pytest.raises(
        InvalidSpecError, match=r"holds a secret.*put it into a Secret.*sink\.optionsFrom"
    ) as caught:
        parse_spec(application(pipeline=pipeline(options={key: "hunter2"})))
    assert "hunter2" not in str(caught.value)
    if key.startswith("spark."):
        with pytest.raises(
            InvalidSpecError, match=r"holds a secret.*put it into a Secret.*sparkConfFrom"
        ) as caught:
            parse_spec(application(sparkConf={key: "hunter2"}))
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["jdbc:x://h/db?user=u&password=p", "https://user:p@host/x"])
def test_a_password_in_a_url_is_rejected(url: str) -> None:
    with pytest.raises(InvalidSpecError, match="url' holds a secret"):
        parse_spec(application(pipeline=pipeline(options={"url": url})))


@pytest.mark.parametrize("key", PLAIN_KEYS)
def test_keys_that_only_name_secrets_are_not(key: str) -> None:
    assert not holds_secret(key, "s3a://bucket/folder")


@pytest.mark.parametrize("key", [key for key in PLAIN_KEYS if not key.startswith("spark.")])
def test_ordinary_options_are_accepted(key: str) -> None:
    parse_spec(application(pipeline=pipeline(options={key: "plain"})))


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_a_bundle_leaves_out_all_that_is_refused(key: str) -> None:
    assert "hunter2" not in str(redacted({"options": {key: "hunter2"}}))
    assert "hunter2" not in redacted_text(f"-D{key}=hunter2")
    if key not in SHORT_WORDS:
        assert "hunter2" not in redacted_text(f"{key}=hunter2")


@pytest.mark.parametrize("options", JAVA_SECRETS)
def test_system_properties_with_secrets_are_refused(options: str) -> None:
    for key in ("spark.driver.extraJavaOptions", "spark.executor.defaultJavaOptions"):
        with pytest.raises(InvalidSpecError, match=r"holds a secret.* Secret.*@/path/of") as caught:
            parse_spec(application(sparkConf={key: options}))
        assert "hunter2" not in str(caught.value)
        assert key in str(caught.value)


@pytest.mark.parametrize("options", JAVA_PLAIN)
def test_other_system_properties_are_accepted(options: str) -> None:
    parse_spec(application(sparkConf={"spark.driver.extraJavaOptions": options}))


@pytest.mark.parametrize("arguments", SECRET_ARGUMENTS, ids=str)
def test_arguments_with_secrets_are_refused(arguments: list[str]) -> None:
    with pytest.raises(
        InvalidSpecError, match=r"arguments: .*holds a secret.* Secret .*with valueFrom"
    ) as caught:
        parse_spec(application(arguments=arguments))
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in str(redacted({"arguments": arguments}))


@pytest.mark.parametrize("arguments", PLAIN_ARGUMENTS, ids=str)
def test_other_arguments_are_accepted(arguments: list[str]) -> None:
    parse_spec(application(arguments=arguments))


@pytest.mark.parametrize("role", ["driver", "executor"])
@pytest.mark.parametrize("kind", ["initContainers", "containers"])
@pytest.mark.parametrize(("name", "value"), SECRET_VARIABLES)
def test_plain_variables_with_secrets_are_refused(
    role: str, kind: str, name: str, value: str
) -> None:
    place = rf"{role}\.template: spec\.{kind}\[0\]\.env\[1\]: the variable '{name}' holds a secret"

    with pytest.raises(InvalidSpecError, match=rf"{place}.* Secret .*valueFrom") as caught:
        parse_spec(application(**{role: template(kind, name=name, value=value)}))
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in str(redacted({"env": [{"name": name, "value": value}]}))


@pytest.mark.parametrize(("name", "value"), PLAIN_VARIABLES)
def test_other_variables_are_accepted(name: str, value: str) -> None:
    parse_spec(application(driver=template("containers", name=name, value=value)))


def test_variables_from_a_secret_are_accepted() -> None:
    source = {"secretKeyRef": {"name": "db", "key": "password"}}

    parse_spec(application(driver=template("containers", name="DB_PASSWORD", valueFrom=source)))


def test_the_api_server_understands_the_names() -> None:
    """RE2 has no look-around, and the rule stands in quotes."""
    for pattern in (HOLDING, NAMING):
        assert not re.search(r"\(\?[=!<]|[\\'\"]", pattern)
    schema = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    fields = schema["properties"]["spec"]["properties"]["application"]["properties"]
    options = fields["pipeline"]["properties"]["sink"]["properties"]["options"]
    for field in (fields["sparkConf"], options):
        (rule,) = (
            r["rule"]
            for r in field["x-kubernetes-validations"]
            if "exists(key" in r["rule"] and "token" in r["rule"]
        )
        assert HOLDING in rule
        assert NAMING in rule


def test_the_driver_mounts_what_sink_and_settings_name() -> None:
    spec = make_spec(
        application={
            **spec_json()["application"],
            "pipeline": pipeline(
                optionsFrom=[{"secretRef": {"name": "sink"}}, {"secretRef": {"name": "kafka"}}]
            ),
            "sparkConfFrom": [{"secretRef": {"name": "storage"}}],
        }
    )
    manifest = spark_application(
        identity(), spec.application, name="orders-1", parallelism=1, secrets=("kafka",), conf={}
    )

    def mounts(role: str) -> list[str]:
        (container,) = manifest["spec"][role]["template"]["spec"]["containers"]
        return [mount["mountPath"] for mount in container.get("volumeMounts", [])]

    assert mounts("driver") == [f"{SECRETS_DIR}/{name}" for name in ("kafka", "sink", "storage")]
    assert mounts("executor") == [f"{SECRETS_DIR}/kafka"]


def test_the_packaged_application_reads_them_from_files(tmp_path: Path) -> None:
    for name, key, value in (
        ("sink", "password", "p1"),
        ("later", "password", "p2"),
        ("storage", "spark.hadoop.fs.s3a.secret.key", "k"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / key).write_text(f"{value}\n")
    sink = Sink(format="jdbc", options={"user": "u"}, secrets=("sink", "later"))
    environment = driver(tmp_path, conf_secrets=("storage",))

    assert sink_options(sink, environment) == {"user": "u", "password": "p2"}
    assert secret_settings(environment) == {"spark.hadoop.fs.s3a.secret.key": "k"}


@pytest.mark.parametrize(
    ("secret", "says"),
    [
        ("gone", "sparkConfFrom: secret gone is not mounted"),
        ("wrong", "sparkConfFrom: fs.s3a.secret.key is not a Spark setting"),
    ],
)
def test_unreadable_values_are_reported_without_their_content(
    tmp_path: Path, secret: str, says: str
) -> None:
    (tmp_path / "wrong").mkdir()
    (tmp_path / "wrong" / "fs.s3a.secret.key").write_text("hunter2")

    with pytest.raises(InvalidSpecError, match=says) as caught:
        secret_settings(driver(tmp_path, conf_secrets=(secret,)))
    assert "hunter2" not in str(caught.value)


def test_a_checkpoint_location_has_no_credentials() -> None:
    """They would stand in the SparkApplication, and in each log."""
    with pytest.raises(InvalidSpecError, match="credentials before an @") as caught:
        parse_spec(application(pipeline={"checkpointLocation": "s3a://KEY:hunter2@lake/c"}))
    assert "hunter2" not in str(caught.value)
    for fine in ("abfss://lake@account.dfs.core.windows.net/c", "hdfs://name:8020/c@1", "/c:a@b"):
        parse_spec(application(pipeline={"checkpointLocation": fine}))
