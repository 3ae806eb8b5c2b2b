"""Secrets of sinks and of Spark come from mounted files; no object of the API server holds them."""

from pathlib import Path
from typing import Any

import pytest

from balanced_source.documents.environment import DriverEnvironment
from balanced_source.documents.pipeline import Sink
from balanced_source.errors import InvalidSpecError
from balanced_source.secret_keys import holds_secret
from balanced_source_operator.resources.pod_templates import SECRETS_DIR
from balanced_source_operator.resources.spark_application import spark_application
from balanced_source_operator.spec import parse_spec
from balanced_source_spark.application import sink_options
from balanced_source_spark.mounted_options import secret_settings
from support.builders import identity, make_spec, spec_json

SECRET_KEYS = [
    "password",
    "kafka.sasl.jaas.config",
    "kafka.ssl.keystore.password",
    "kafka.ssl.keystore.key",
    "spark.hadoop.fs.s3a.secret.key",
    "spark.hadoop.fs.s3a.access.key",
    "spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net",
    "spark.hadoop.fs.azure.account.oauth2.client.secret.lake.dfs.core.windows.net",
    "spark.executorEnv.AWS_SECRET_ACCESS_KEY",
    "spark.kubernetes.driverEnv.AWS_SECRET_ACCESS_KEY",
    "spark.kubernetes.authenticate.driver.oauthToken",
    "spark.ssl.keyPassword",
    "spark.authenticate.secret",
    "spark.sql.catalog.lake.token",
]
PLAIN_KEYS = [
    "path",
    "url",
    "key.column",
    "primaryKey",
    "kafka.bootstrap.servers",
    "spark.kubernetes.driver.secrets.credentials",
    "spark.kubernetes.driver.secretKeyRef.AWS_SECRET_ACCESS_KEY",
    "spark.hadoop.fs.s3a.aws.credentials.provider",
    "spark.hadoop.hadoop.security.credential.provider.path",
    "spark.kubernetes.authenticate.driver.oauthTokenFile",
    "spark.security.credentials.kafka.enabled",
    "spark.sql.shuffle.partitions",
    "spark.ssl.keyStoreType",
]


def application(**changes: Any) -> dict[str, Any]:
    return spec_json(application={**spec_json()["application"], **changes})


def pipeline(**sink: Any) -> dict[str, Any]:
    return {"checkpointLocation": "/c", "sink": {"format": "jdbc", **sink}}


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
