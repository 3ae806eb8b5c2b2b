"""What hosts of a source must not share."""

import pytest

from balanced_source.documents.environment import DriverEnvironment
from balanced_source.documents.pipeline import Pipeline, ProcessingTime, Sink
from balanced_source.errors import InvalidSpecError
from balanced_source_spark.application import source_options
from balanced_source_spark.host_outputs import of_host, own_sink, query_name
from balanced_source_spark.options import parse_options

PIPELINE = Pipeline(
    checkpoint_location="s3a://b/checkpoint/", sink=Sink(), trigger=ProcessingTime("0")
)


def path(host: str, value: str, *, kind: str = "parquet", name: str = "path") -> str:
    return own_sink(Sink(format=kind), {name: value}, host=host)[name]


def environment(host: str) -> DriverEnvironment:
    return DriverEnvironment(name="orders", namespace="shop", uid="u", host=host)


def test_the_first_host_keeps_the_outputs_of_the_only_one() -> None:
    assert of_host(PIPELINE, "0") is PIPELINE
    assert query_name(environment("0")) == "orders"
    assert path("0", "/data/orders") == "/data/orders"
    assert "host" not in source_options(PIPELINE, environment("0"))


def test_a_further_host_has_its_own_checkpoint_query_and_folder() -> None:
    assert of_host(PIPELINE, "2").checkpoint_location == "s3a://b/checkpoint/hosts/2"
    assert query_name(environment("2")) == "orders-host-2"
    assert path("2", "/data/orders/") == "/data/orders-host-2"
    assert path("2", "s3a://b/orders", name="PATH") == "s3a://b/orders-host-2"
    assert source_options(PIPELINE, environment("2"))["host"] == "2"


@pytest.mark.parametrize("kind", ["delta", "Iceberg", "hudi", "kafka"])
def test_formats_with_transactions_are_shared(kind: str) -> None:
    assert path("2", "/data/orders", kind=kind) == "/data/orders"


@pytest.mark.parametrize("kind", ["parquet", "org.apache.spark.sql.parquet", "csv", "acme"])
def test_every_other_format_gets_a_folder_of_its_own(kind: str) -> None:
    assert (
        path("2", "/data/orders", kind=kind)
        != path("1", "/data/orders", kind=kind)
        != "/data/orders"
    )


@pytest.mark.parametrize("host", ["0", "2"])
def test_a_path_may_say_where_the_host_goes(host: str) -> None:
    assert path(host, "s3a://b/host={host}") == f"s3a://b/host={host}"
    assert path(host, "/orders/{host}", kind="delta") == f"/orders/{host}"


@pytest.mark.parametrize(
    "root", ["/", "", "s3a://bucket", "s3a://bucket/", "file:///", "hdfs://name:8020//"]
)
def test_the_root_of_a_file_system_is_refused(root: str) -> None:
    with pytest.raises(InvalidSpecError, match="has no folder beside it for host 2"):
        path("2", root)


def test_a_query_under_an_operator_is_the_host_named_in_its_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BALANCED_SOURCE_HOST", "3")

    assert parse_options({"source": "orders", "uid": "u"}).host == "3"
    assert parse_options({"source": "orders", "uid": "u", "host": "1"}).host == "1"
    assert parse_options({"assignmentDir": "documents"}).host == "0"
