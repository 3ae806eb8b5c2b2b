"""A source of files never makes the operator use what its own pod has.

The driver lists. A source that names a Secret gets its credentials from there alone.
"""

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from balanced_source.api import Caller, DriverOnly
from balanced_source.connectors.files import FilesSource, Format, Store, reached
from balanced_source.errors import ContractViolationError, InvalidSpecError, RefusedDiscoveryError
from balanced_source_adapters.files import azure, gcs
from balanced_source_adapters.files.connector import FilesConnector
from balanced_source_adapters.files.stores import store_of
from balanced_source_operator.controller.translate import to_source
from balanced_source_operator.spec import parse_spec
from support.builders import spec_json

URLS = [
    "/in",
    "s3://b/in",
    "gs://b/in",
    "az://raw/in",
    "abfss://raw@lake.dfs.core.windows.net/in",
    "hdfs://namenode:8020/in",
]
KEY = {"client_email": "a@b", "private_key": "of the source", "private_key_id": "1"}
METADATA = "http://169.254.169.254"
SECRET = {
    "serviceAccount": json.dumps(KEY),
    "accountKey": "b2YgdGhlIHNvdXJjZQ==",
    "accessKeyId": "source",
    "secretAccessKey": "of the source",
}


class Secrets:
    def read(self, name: str) -> dict[str, str]:
        return SECRET


class Empty(BaseHTTPRequestHandler):
    """A bucket without objects. Remembers who asked."""

    asked: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self) -> None:
        signature = self.headers.get("Authorization", "")
        who = signature.partition("Credential=")[2].partition("/")[0]
        self.asked.append((who, self.headers.get("x-amz-security-token")))
        page = b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
        self.send_response(200)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def empty_bucket() -> Iterator[str]:
    Empty.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Empty)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def _operator_has_an_identity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(json.dumps({**KEY, "private_key": "of the operator"}))
    for name, value in {
        "GOOGLE_APPLICATION_CREDENTIALS": str(token),
        "GOOGLE_SERVICE_ACCOUNT_KEY": token.read_text(),
        "GOOGLE_SKIP_SIGNATURE": "true",
        "AZURE_STORAGE_ACCOUNT_NAME": "operator",
        "AZURE_STORAGE_ACCOUNT_KEY": "b2YgdGhlIG9wZXJhdG9y",
        "AZURE_STORAGE_SAS_TOKEN": "sig=operator",
        "AZURE_STORAGE_TOKEN": "operator",
        "AZURE_STORAGE_ENDPOINT": "http://environment.invalid",
        "AZURE_STORAGE_USE_EMULATOR": "true",
        "AZURE_SKIP_SIGNATURE": "true",
        "AZURE_CLIENT_ID": "operator",
        "AZURE_TENANT_ID": "operator",
        "AZURE_FEDERATED_TOKEN_FILE": str(token),
        "IDENTITY_ENDPOINT": METADATA,
        "IDENTITY_HEADER": "operator",
        "GCE_METADATA_HOST": "169.254.169.254",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("secret", [None, "keys"])
@pytest.mark.parametrize("url", URLS)
def test_the_operator_lists_no_store(
    url: str, secret: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it has the clients that would ask the metadata of the instance."""
    for client in ("obstore", "obstore.store", "pyarrow.fs"):
        monkeypatch.setitem(sys.modules, client, None)
    account = "lake" if url.startswith("a") else ""
    source = FilesSource(
        paths=(url,),
        kind_of_file=Format.TEXT,
        store=reached(Store(secret=secret, account=account), [url]),
    )
    call, connector = source.list_page(1, None), FilesConnector()

    assert connector.identity_of(call) == DriverOnly()
    operator = connector.executor(Secrets(), caller=Caller.OPERATOR, client_id="c")
    with pytest.raises(ContractViolationError, match="only the driver lists files"):
        operator(call)


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "metadata.google.internal", "169.254.170.2", "[fd00:ec2::254]"]
)
@pytest.mark.parametrize(("kind", "url"), [("gcs", "gs://b/in"), ("azure", "az://raw/in")])
def test_no_endpoint_is_the_metadata_of_an_instance(kind: str, url: str, host: str) -> None:
    account = {"account": "lake"} if kind == "azure" else {}
    access = {"endpoint": f"http://{host}", **account}
    files = {"paths": [url], "format": "Text", kind: access}

    with pytest.raises(InvalidSpecError) as refused:
        to_source(parse_spec(spec_json(source={"files": files})))
    assert refused.value.field.startswith(f"spec.source.files.{kind}.endpoint")


def test_s3_uses_the_secret_whatever_the_environment_has(
    monkeypatch: pytest.MonkeyPatch, empty_bucket: str
) -> None:
    """The token belongs to the environment's key: with another key a server refuses it."""
    pytest.importorskip("obstore")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "operator")
    place = Store(region="us-east-1", endpoint=empty_bucket, secret="k")  # noqa: S106 - a name
    store: Any = store_of(place, ("s3://bucket/in",), Secrets())

    assert list(store._below("bucket", "in", None)) == []

    assert set(Empty.asked) == {("source", None)}


def test_azure_uses_the_secret_whatever_the_environment_has() -> None:
    pytest.importorskip("obstore")
    store = Store(endpoint="https://lake.blob.core.windows.net", account="lake", secret="k")  # noqa: S106 - a name

    client: Any = azure.azure_store(store, Secrets())._client_of("raw")

    given = {name: text for name, text in client.config.items() if "name" not in name}
    assert given == {
        "endpoint": "https://lake.blob.core.windows.net",
        "credential_type": "access_key",
        "account_key": SECRET["accountKey"],
        "skip_signature": "false",
        "use_emulator": "false",
    }


@pytest.mark.parametrize("name", gcs._RIVALS)
def test_variables_that_would_win_over_the_secret_of_google_are_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "operator")
    with pytest.raises(RefusedDiscoveryError, match=f"{name} of this process stands beside Secret"):
        gcs.gcs_store(Store(secret="k"), Secrets())  # noqa: S106 - a name


def test_others_do_not_win_over_the_secret_of_google(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in gcs._RIVALS:
        monkeypatch.delenv(name, raising=False)
    assert gcs._credentials("k", Secrets()) == {
        "service_account_key": json.dumps(KEY),
        "skip_signature": "false",
    }
