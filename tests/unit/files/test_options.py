"""Options of files: what they mean, and the words for what is wrong."""

import pytest

from balanced_source.connectors.files import FilesSource, Format, OnFileLoss, Store
from balanced_source.errors import InvalidSpecError
from balanced_source_spark.options import parse_options

GIVEN = {"connector": "files", "path": "/in"}


def test_the_source_of_a_query() -> None:
    options = parse_options(
        {
            **GIVEN,
            "fileFormat": "JSON",
            "schema": "id INT",
            "discoveryInterval": "5s",
            "stateDir": "/state",
            "lateWindow": "10m",
            "onLoss": "Skip",
            "splitBytes": "1000",
            "lookAhead": "3",
        }
    )

    assert options.embedded == FilesSource(
        paths=("/in",),
        kind_of_file=Format.JSON,
        discovery_interval=5.0,
        late=600.0,
        on_loss=OnFileLoss.SKIP,
        split_bytes=1000,
        ahead=3,
    )
    assert str(options.state_dir) == "/state"


def test_objects_of_a_store() -> None:
    given = {
        "s3Endpoint": "http://localhost:9000",
        "s3Region": "x",
        "s3Secret": "store",
        "secretsDir": "/s",
    }
    options = parse_options({"connector": "files", "paths": '["s3://a/b", "s3://c"]', **given})

    assert isinstance(options.embedded, FilesSource)
    assert options.embedded.store == Store(
        endpoint="http://localhost:9000",
        region="x",
        secret="store",  # noqa: S106 - a name
    )
    assert options.embedded.paths == ("s3://a/b", "s3://c")


def test_objects_of_other_clouds() -> None:
    def store(path: str, **given: str) -> Store:
        embedded = parse_options({"connector": "files", "path": path, **given}).embedded
        assert isinstance(embedded, FilesSource)
        return embedded.store

    lake = Store(endpoint="https://lake.blob.core.windows.net", account="lake")
    secrets = {"secretsDir": "/s"}

    assert store("gs://b/in", gcsEndpoint="http://g:1", gcsSecret="k", **secrets) == Store(
        endpoint="http://g:1",
        secret="k",  # noqa: S106 - a name
    )
    assert store("az://raw/in", azureAccount="lake") == lake
    assert store("abfss://raw@lake.dfs.core.windows.net/in") == lake
    assert store(
        "az://raw/in",
        azureAccount="lake",
        azureEndpoint="http://a:1",
        azureSecret="k",
        **secrets,
    ) == Store(endpoint="http://a:1", account="lake", secret="k")  # noqa: S106 - a name
    assert store("hdfs://n:8020/in") == Store()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"path": "gs://b", "azureAccount": "lake"}, "azureAccount: has no meaning for Google"),
        ({"path": "/in", "gcsSecret": "k"}, "gcsSecret: has no meaning for local files"),
        ({"path": "gs://b", "gcsEndpoint": "g:1"}, "gcsEndpoint: expected an http or https"),
        ({"path": "az://raw/in"}, "names no Azure account"),
        ({"path": "az://raw/in", "azureAccount": "x.y"}, "expected the name of a storage account"),
        ({"path": "abfss://raw/in"}, "names no container and account"),
        ({"path": "in"}, "is relative"),
        ({"paths": "[]"}, "set either path"),
        ({"path": "/in", "paths": '["/in"]'}, "set either path"),
        ({"paths": "/in"}, "JSON array"),
        ({"paths": '["/in", "s3://b/k"]'}, "two sources"),
        ({"path": "ftp://x/y"}, "supported are"),
        ({**GIVEN, "fileFormat": "xml"}, "expected one of text, json"),
        ({**GIVEN, "discoveryInterval": "5s"}, "stateDir"),
        ({**GIVEN, "onLoss": "Stop"}, "expected one of fail, skip"),
        ({**GIVEN, "sep": "ab"}, "one ASCII character"),
        ({**GIVEN, "s3Endpoint": "localhost:9000"}, "expected an http"),
        ({**GIVEN, "s3Secret": "../x"}, "s3Secret"),
        ({**GIVEN, "spiltBytes": "1"}, "did you mean splitBytes"),
    ],
)
def test_mistakes_are_reported(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidSpecError, match=message):
        parse_options({"connector": "files", **given})


def test_a_batch_query_ends() -> None:
    with pytest.raises(InvalidSpecError, match="no meaning for a batch query"):
        parse_options({**GIVEN, "discoveryInterval": "5s", "stateDir": "/s"}, is_batch=True)
