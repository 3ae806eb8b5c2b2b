"""A source that names a Secret never gets the role, the profile or the proxy of the operator."""

from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSRequest, AWSResponse

from balanced_source.api import DriverOnly, NamedSecrets
from balanced_source.connectors.kinesis import ListShards, Server
from balanced_source_adapters.kinesis import client as module
from balanced_source_adapters.kinesis.connector import KinesisConnector

SECRET = {"accessKeyId": "OFTHESOURCE", "secretAccessKey": "hidden"}


@pytest.fixture
def _operator_has_a_role(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    profile = tmp_path / "config"
    profile.write_text(
        "[profile operator]\naws_access_key_id = OFTHEPROFILE\naws_secret_access_key = x\n"
        "region = us-west-9\nendpoint_url = http://profile.invalid\n"
    )
    for name, value in {
        "AWS_ACCESS_KEY_ID": "OFTHEOPERATOR",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_SESSION_TOKEN": "of-the-operator",
        "AWS_PROFILE": "operator",
        "AWS_CONFIG_FILE": str(profile),
        "AWS_ENDPOINT_URL": "http://environment.invalid",
        "AWS_ENDPOINT_URL_KINESIS": "http://environment.invalid",
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(profile),
        "AWS_ROLE_ARN": "arn:aws:iam::1:role/operator",
        "HTTPS_PROXY": "http://proxy.invalid",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("_operator_has_a_role")
def test_a_request_is_signed_by_the_secret_alone_and_goes_where_the_source_says() -> None:
    sent: list[AWSRequest] = []

    def answer(request: AWSRequest, **_: Any) -> AWSResponse:
        sent.append(request)
        return AWSResponse(request.url, 400, {}, None)

    made = module._client(Server(region="eu-west-1", secret="s"), "eu-west-1", SECRET, "c")  # noqa: S106
    made.meta.events.register("before-send.kinesis", answer)
    with pytest.raises(Exception):  # noqa: B017, PT011 - the answer has no body
        made.list_shards(StreamName="orders")

    (request,) = sent
    assert request.url == "https://kinesis.eu-west-1.amazonaws.com/"
    assert "Credential=OFTHESOURCE/" in str(request.headers["Authorization"])
    assert "X-Amz-Security-Token" not in request.headers
    assert made.meta.config.proxies == {}


def test_without_a_secret_only_the_driver_may_ask() -> None:
    def call(secret: str | None) -> ListShards:
        return ListShards(scope="orders", round=1, server=Server(region="r", secret=secret))

    connector = KinesisConnector()

    assert connector.identity_of(call(None)) == DriverOnly()
    assert connector.identity_of(call("streams")) == NamedSecrets(("streams",))
