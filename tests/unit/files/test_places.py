"""In which store paths lie, and what their URLs say of how it is reached."""

import pytest

from balanced_source.connectors.files import (
    FileReaderSettings,
    FilesSource,
    Format,
    Store,
    StoreKind,
    StorePlace,
    kind_of_all,
    place_of,
    reached,
    scheme_of,
)
from balanced_source_adapters.files.connector import FilesCodec

LAKE = "abfss://raw@lake.dfs.core.windows.net/in"


@pytest.mark.parametrize(
    ("url", "place", "scheme"),
    [
        ("s3://b/k/", StorePlace(StoreKind.S3, "", "b/k"), "s3://"),
        ("s3a://b", StorePlace(StoreKind.S3, "", "b"), "s3://"),
        ("gs://b/k/*", StorePlace(StoreKind.GCS, "", "b/k/*"), "gs://"),
        ("az://c/k", StorePlace(StoreKind.AZURE, "", "c/k"), "az://"),
        (LAKE, StorePlace(StoreKind.AZURE, "lake.blob.core.windows.net", "raw/in"), "az://"),
        (
            "abfss://$web@lake.dfs.core.chinacloudapi.cn",
            StorePlace(StoreKind.AZURE, "lake.blob.core.chinacloudapi.cn", "$web"),
            "az://",
        ),
        ("hdfs://n:8020/in/", StorePlace(StoreKind.HDFS, "n:8020", "/in"), "hdfs://n:8020"),
        ("hdfs:///in", StorePlace(StoreKind.HDFS, "", "/in"), "hdfs://"),
        ("hdfs://service", StorePlace(StoreKind.HDFS, "service", "/"), "hdfs://service"),
    ],
)
def test_where_a_url_leads(url: str, place: StorePlace, scheme: str) -> None:
    assert place_of(url) == place
    assert scheme_of(url) == scheme
    assert kind_of_all([scheme]) is place.kind, "the scheme alone tells a reader the kind"


@pytest.mark.parametrize("path", ["/in", "file:///in"])
def test_other_paths_are_local(path: str) -> None:
    assert (kind_of_all([path]), scheme_of(path)) == (StoreKind.VOLUME, "")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("gs://", "names no bucket: write gs://bucket/key"),
        ("s3:///", "names no bucket"),
        ("abfss://raw/in", "write abfss://container@account"),
        ("abfss://raw@lake/in", "write abfss://container@account"),
        ("abfss://raw@lake.dfs.x@y/in", "write abfss://container@account"),
        ("hdfs://a:b/in", "names no name node"),
        ("hdfs://user@a:1/in", "names no name node"),
    ],
)
def test_malformed_urls_are_named(url: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        place_of(url)


@pytest.mark.parametrize(
    ("paths", "says"),
    [
        (["/in", "s3://b"], r"several stores \(S3, local files\): read them as two sources"),
        (["gs://b", "s3://b"], r"several stores \(Google Cloud Storage, S3\)"),
        (
            [LAKE, LAKE.replace("lake", "pond")],
            r"several Azure accounts \(lake\..*, pond\.",
        ),
        ([LAKE, "az://raw/in"], "several Azure accounts"),
        (["hdfs://a:1/in", "hdfs://b:1/in"], r"several name nodes \(a:1, b:1\)"),
        (["hdfs:///in", "hdfs://b:1/in"], r"several name nodes \(b:1\)"),
        (["az://raw/in"], "names no Azure account"),
    ],
)
def test_one_source_reads_one_store(paths: list[str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        reached(Store(), paths)


def test_the_account_is_that_of_the_url_or_of_the_settings() -> None:
    full = Store(account="lake", endpoint="https://lake.blob.core.windows.net", secret="k")  # noqa: S106 - a name

    assert reached(Store(secret="k"), [LAKE]) == full  # noqa: S106 - a name
    assert reached(Store(account="lake", secret="k"), ["az://raw", LAKE]) == full  # noqa: S106 - a name
    local = Store(account="lake", endpoint="http://localhost:10000")
    assert reached(local, ["az://raw/in"]) == local
    with pytest.raises(ValueError, match="account lake, and the settings of the store name pond"):
        reached(Store(account="pond"), [LAKE])


@pytest.mark.parametrize("path", ["/in", "s3://b/in", "gs://b/in", "hdfs://n:1/in"])
def test_other_stores_are_reached_as_the_settings_say(path: str) -> None:
    store = Store(endpoint="http://x", region="r", secret="k")  # noqa: S106 - a name
    assert reached(store, [path]) == store


def test_documents_name_an_account_only_where_there_is_one() -> None:
    plain, lake = Store(endpoint="e", region="r"), Store(account="lake")

    assert plain.to_json() == {"endpoint": "e", "region": "r", "secret": None}
    assert lake.to_json() == {"endpoint": "", "region": "", "secret": None, "account": "lake"}
    assert [Store.from_json(store.to_json()) for store in (plain, lake)] == [plain, lake]


def test_readers_are_told_the_store() -> None:
    source = FilesSource(paths=(LAKE,), kind_of_file=Format.TEXT, store=reached(Store(), [LAKE]))
    settings = FileReaderSettings.of(source.reader_settings())

    assert (settings.scheme, settings.store.account) == ("az://", "lake")


def test_a_call_tells_the_driver_the_account() -> None:
    source = FilesSource(paths=(LAKE,), kind_of_file=Format.TEXT, store=reached(Store(), [LAKE]))
    call, codec = source.list_page(1, None), FilesCodec()
    data = codec.call_to_json(call)

    assert codec.call_from_json(data) == call
    assert data["store"]["account"] == "lake"
