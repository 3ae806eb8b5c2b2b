"""Secrets in a notebook.

Every way to give them opens a broker with TLS and SASL, and no way shows them.
"""

import base64
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from balanced_source_spark.kafka import native
from support.queries import Collector, start, wait_rows
from testbed.kafka import KafkaCluster, Listener

from .conftest import PASSWORD, PASSWORD_VARIABLE

pytestmark = pytest.mark.integration

LOGIN = "org.apache.kafka.common.security"
SCRAM = f"{LOGIN}.scram.ScramLoginModule required"
READERS = ["python", *(["native"] if native.is_available() else [])]


def jwt(user: str) -> str:
    """An unsigned token for an hour; the broker of the tests takes it."""
    now = int(time.time())
    parts = (
        {"alg": "none", "typ": "JWT"},
        {"sub": user, "iat": now, "exp": now + 3600, "scope": "any"},
    )
    texts = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts
    )
    return ".".join((*texts, ""))


class TokenEndpoint(BaseHTTPRequestHandler):
    """Gives a token to who knows the client's secret."""

    def do_POST(self) -> None:
        """Answer a request for a token by client credentials."""
        wanted = base64.b64encode(f"orders:{PASSWORD}".encode()).decode()
        is_known = self.headers["Authorization"] == f"Basic {wanted}"
        body = json.dumps(
            {"access_token": jwt("alice"), "expires_in": 3600} if is_known else {"error": "unknown"}
        )
        self.send_response(200 if is_known else 401)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), TokenEndpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/token"
        server.shutdown()


@pytest.fixture
def folder(tmp_path: Path, secured: KafkaCluster) -> Path:
    found = {"sasl.username": "alice", "sasl.password": PASSWORD, "ca.crt": ca(secured)}
    for name, value in found.items():
        (tmp_path / name).write_text(value)
    return tmp_path


def ca(secured: KafkaCluster) -> str:
    return (secured.pki / "ca.crt").read_text()


def read(
    spark: SparkSession, secured: KafkaCluster, listener: Listener, options: Mapping[str, str]
) -> int:
    given = {
        "kafka.bootstrap.servers": secured.bootstrap_of(listener),
        "subscribe": "hers",
        **options,
    }
    return (
        spark.read.format("balanced")
        .option("kafka.security.protocol", listener.protocol)
        .options(**given)
        .load()
        .count()
    )


def scram(secured: KafkaCluster, **more: str) -> dict[str, str]:
    return {"kafka.sasl.mechanism": "SCRAM-SHA-512", "kafka.ssl.ca.pem": ca(secured), **more}


Given = Callable[[KafkaCluster], dict[str, str]]
WAYS: Mapping[str, Given] = {
    "password": lambda secured: scram(
        secured, **{"kafka.sasl.username": "alice", "kafka.sasl.password": PASSWORD}
    ),
    "JAAS": lambda secured: scram(
        secured, **{"kafka.sasl.jaas.config": f'{SCRAM} username="alice" password="{PASSWORD}";'}
    ),
    "environment": lambda secured: scram(
        secured,
        **{
            "kafka.sasl.jaas.config": (
                f'{SCRAM} username="alice" password="${{env:{PASSWORD_VARIABLE}}}";'
            )
        },
    ),
    "PEM of Java": lambda secured: {
        **WAYS["password"](secured),
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": ca(secured),
    },
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("way", WAYS)
def test_options_open_a_broker_with_scram_and_tls(
    spark: SparkSession, secured: KafkaCluster, way: str, reader: str
) -> None:
    assert read(spark, secured, Listener.SASL_TLS, {**WAYS[way](secured), "reader": reader}) == 3


def test_files_open_it(spark: SparkSession, secured: KafkaCluster, folder: Path) -> None:
    given = {"secretsDir": str(folder), "kafka.sasl.mechanism": "SCRAM-SHA-512"}
    assert read(spark, secured, Listener.SASL_TLS, given) == 3


def test_a_certificate_of_the_client_opens_it(spark: SparkSession, secured: KafkaCluster) -> None:
    assert secured.security is not None
    issued = secured.security.authority.issue_client("alice")
    pem = {
        "kafka.ssl.keystore.certificate.chain": issued.certificate,
        "kafka.ssl.keystore.key": issued.key,
    }
    assert read(spark, secured, Listener.MTLS, {**pem, "kafka.ssl.ca.pem": ca(secured)}) == 3


@pytest.mark.parametrize("reader", READERS)
def test_a_token_endpoint_opens_it(
    spark: SparkSession, secured: KafkaCluster, endpoint: str, reader: str
) -> None:
    line = (
        f'{LOGIN}.oauthbearer.OAuthBearerLoginModule required clientId="orders"'
        f' clientSecret="{PASSWORD}";'
    )
    given = {
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "kafka.sasl.jaas.config": line,
        "kafka.sasl.oauthbearer.token.endpoint.url": endpoint,
        "reader": reader,
    }
    assert read(spark, secured, Listener.SASL, given) == 3


def test_a_function_that_returns_tokens_opens_it(
    spark: SparkSession, secured: KafkaCluster
) -> None:
    """It is called with `sasl.oauthbearer.config`, in the driver and in tasks."""
    answer = repr((jwt("alice"), time.time() + 3600))
    given = {"tokenProvider": "ast:literal_eval", "kafka.sasl.oauthbearer.config": answer}
    assert read(spark, secured, Listener.SASL, given) == 3


def test_no_secret_is_shown_anywhere(
    spark: SparkSession, secured: KafkaCluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """In plans, progress, offsets, exceptions and logs."""
    given = {
        "kafka.bootstrap.servers": secured.bootstrap_of(Listener.SASL_TLS),
        "kafka.security.protocol": "SASL_SSL",
        "subscribe": "hers",
        "startingOffsets": "earliest",
        **WAYS["environment"](secured),
        "kafka.sasl.password": PASSWORD,
    }
    sink = Collector()
    query = start(spark, sink, tmp_path / "ck", **given)
    try:
        wait_rows(query, sink, 3)
        shown = [str(query.lastProgress), str(query.status)]
        query.explain(extended=True)
    finally:
        query.stop()
    spark.readStream.format("balanced").options(**given).load().explain(extended=True)
    with pytest.raises(PySparkException) as raised:
        read(
            spark,
            secured,
            Listener.SASL_TLS,
            {**given, "kafka.sasl.jaas.config": SCRAM + f' username="{PASSWORD}";'},
        )
    files = [
        path.read_text(errors="replace") for path in (tmp_path / "ck").rglob("*") if path.is_file()
    ]
    everything = "\n".join([*shown, str(raised.value), *files, *capfd.readouterr()])
    assert PASSWORD not in everything
    assert os.environ[PASSWORD_VARIABLE] == PASSWORD


def test_a_wrong_password_is_reported_without_its_value(
    spark: SparkSession, secured: KafkaCluster
) -> None:
    wrong = scram(
        secured, **{"kafka.sasl.username": "alice", "kafka.sasl.password": "battery-staple"}
    )
    with pytest.raises(PySparkException) as raised:
        read(spark, secured, Listener.SASL_TLS, {**wrong, "startTimeoutSeconds": "20"})
    assert "check the credentials" in str(raised.value).splitlines()[0]
    assert "battery-staple" not in str(raised.value)
