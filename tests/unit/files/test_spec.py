"""What is refused of a source of files before anything runs."""

from typing import Any

import pytest

from balanced_source.api import Boundedness
from balanced_source.connectors.files import FilesSource, Format, Store
from balanced_source.errors import InvalidSpecError
from balanced_source_adapters.files.connector import FilesConnector
from balanced_source_operator.controller.translate import to_source
from balanced_source_operator.local import read_spec
from balanced_source_operator.spec import parse_spec
from support.builders import spec_json
from testbed.versions import CHECKOUT


def raw(**application: Any) -> dict[str, Any]:
    made = spec_json(source={"files": {"paths": ["/data/in"], "format": "Text"}})
    return {**made, "application": {**made["application"], **application}}


def test_several_hosts_are_refused() -> None:
    to_source(parse_spec(raw()))
    with pytest.raises(
        InvalidSpecError, match="hosts cannot be used with this kind of source"
    ) as caught:
        to_source(parse_spec(raw(hosts={"count": 2})))

    assert caught.value.field == "spec.application.hosts"


@pytest.mark.parametrize(
    ("name", "path"),
    # Of the example
    [("files.yaml", "s3://shop/orders/*.json"), ("files-laptop.yaml", "/tmp/orders")],  # noqa: S108
)
def test_the_examples_are_valid(name: str, path: str) -> None:
    spec = read_spec(CHECKOUT / "examples" / name)
    source = to_source(spec)

    assert isinstance(source, FilesSource)
    assert (source.paths, source.kind_of_file) == ((path,), Format.JSON)
    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED


def files(paths: list[str], **more: Any) -> FilesSource:
    made = spec_json(source={"files": {"paths": paths, "format": "Text", **more}})
    source = to_source(parse_spec(made))
    assert isinstance(source, FilesSource)
    return source


def test_settings_of_each_store_reach_its_source() -> None:
    gcs = {"endpoint": "https://g.example", "secret": "keys"}
    lake = "abfss://raw@lake.dfs.core.windows.net/in"

    assert files(["gs://b/in"], gcs=gcs).store == Store(**gcs)
    assert files(["gs://b/in"]).store == Store()
    assert files(["hdfs://n:8020/in"]).store == Store()
    assert files([lake], azure={"secret": "keys"}).store == Store(
        endpoint="https://lake.blob.core.windows.net",
        account="lake",
        secret="keys",  # noqa: S106 - a name
    )
    assert files(["az://raw/in"], azure={"account": "lake", "endpoint": "http://a:1"}).store == (
        Store(endpoint="http://a:1", account="lake")
    )
    assert FilesConnector().secrets(files(["gs://b/in"], gcs=gcs)) == ("keys",)
    assert FilesConnector().secrets(files(["gs://b/in"])) == ()


@pytest.mark.parametrize(
    ("paths", "more", "field", "says"),
    [
        (["gs://b/in", "s3://b/in"], {}, "paths", "several stores"),
        (["/in", "hdfs://n:1/in"], {}, "paths", "several stores"),
        (["az://raw/in"], {}, "paths", "names no Azure account"),
        (["abfss://raw@lake.other/in"], {}, "paths", "names no container and account"),
        (["gs://b/in"], {"s3": {}}, "s3", "no meaning for Google Cloud Storage"),
        (["s3://b/in"], {"gcs": {}}, "gcs", "no meaning for S3"),
        (["/in"], {"azure": {"account": "lake"}}, "azure", "no meaning for local files"),
    ],
)
def test_settings_that_contradict_the_paths_are_refused(
    paths: list[str], more: dict[str, Any], field: str, says: str
) -> None:
    with pytest.raises(InvalidSpecError, match=says) as refused:
        files(paths, **more)

    assert refused.value.field == f"spec.source.files.{field}"
