"""Options of files: what they mean, and the words for what is wrong."""

from contextlib import nullcontext

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    CharType,
    DayTimeIntervalType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimeType,
    VarcharType,
    VariantType,
)

from balanced_source.connectors.files import FilesSource, Format, OnFileLoss, Store
from balanced_source.errors import InvalidSpecError
from balanced_source_spark.contract.half import Query
from balanced_source_spark.files.half import FilesSparkHalf
from balanced_source_spark.files.options import (
    check_columns,
    check_types,
    ddl_of,
    file_read_options,
)
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
        ({"path": "s3:///b/in"}, "names no bucket: write s3://bucket/key"),
        ({"path": "s3://b*/in"}, r"has \* in the name of its bucket"),
        ({"path": "gs://{a,b}/in"}, "has { in the name of its bucket"),
        ({"paths": "[]"}, "set either path"),
        ({"path": "/in", "paths": '["/in"]'}, "set either path"),
        ({"paths": "/in"}, "JSON array"),
        ({"paths": '["/in", "s3://b/k"]'}, "two sources"),
        ({"path": "ftp://x/y"}, "supported are"),
        ({**GIVEN, "fileFormat": "xml"}, "expected one of text, json"),
        ({**GIVEN, "discoveryInterval": "5s"}, "stateDir"),
        ({**GIVEN, "onLoss": "Stop"}, "expected one of fail, skip"),
        ({**GIVEN, "sep": "ab"}, "one ASCII character"),
        ({**GIVEN, "sep": "\n"}, "one ASCII character within a line"),
        ({**GIVEN, "sep": ""}, "sep: expected one ASCII character"),
        ({**GIVEN, "quote": "''"}, "quote: expected one ASCII character"),
        ({**GIVEN, "escape": "é"}, "escape: expected one ASCII character"),
        ({**GIVEN, "quote": ","}, "sep: ',' is also set as quote or escape"),
        ({**GIVEN, "sep": ";", "escape": ";"}, "sep: ';' is also set as quote or escape"),
        ({**GIVEN, "s3Endpoint": "localhost:9000"}, "expected an http"),
        ({**GIVEN, "path": "/in", "stateDir": "/in/state"}, "files of '/in/state' are read, too"),
        ({**GIVEN, "path": "/in/*.json", "stateDir": "/in/./"}, "name another folder"),
        ({**GIVEN, "s3Endpoint": "http://[::1"}, "s3Endpoint: expected an http or https URL"),
        ({**GIVEN, "s3Endpoint": "http://h:9o"}, "s3Endpoint: expected an http or https URL"),
        ({**GIVEN, "s3Secret": "../x"}, "s3Secret"),
        ({**GIVEN, "spiltBytes": "1"}, "did you mean splitBytes"),
    ],
)
def test_mistakes_are_reported(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidSpecError, match=message):
        parse_options({"connector": "files", **given})


def test_credentials_in_a_url_are_not_shown() -> None:
    with pytest.raises(InvalidSpecError, match="name a Secret") as raised:
        parse_options({"connector": "files", "path": "s3://user:pass@b/in"})

    assert "pass@" not in str(raised.value)


def test_a_batch_query_ends() -> None:
    with pytest.raises(InvalidSpecError, match="no meaning for a batch query"):
        parse_options({**GIVEN, "discoveryInterval": "5s", "stateDir": "/s"}, is_batch=True)


def test_a_quote_that_escapes_itself_is_a_doubled_quote() -> None:
    """Users of Spark's own source write it so."""
    assert file_read_options({"fileformat": "csv", "escape": '"'}).escape == ""
    assert file_read_options({"fileformat": "csv", "escape": "'", "quote": "'"}).escape == ""
    assert file_read_options({"fileformat": "csv", "escape": "\\"}).escape == "\\"


@pytest.mark.parametrize(
    ("kind", "columns", "why"),
    [
        ("json", {"_corrupt_record": "string"}, "has only '_corrupt_record'"),
        ("csv", {"_corrupt_record": "string", "_size": "bigint"}, "has only '_corrupt_record'"),
        ("json", {"id": "int", "_corrupt_record": "int"}, "'_corrupt_record' is for text"),
        ("text", {"a": "string", "b": "string"}, "format text has one column, which is STRING"),
        ("text", {"value": "binary"}, "format text has one column, which is STRING"),
        ("binary", {"content": "string"}, "format binary has one column, which is BINARY"),
        ("text", {"line": "string", "_size": "bigint"}, ""),
        ("binary", {"_path": "string"}, ""),
        ("json", {"id": "int", "_corrupt_record": "string"}, ""),
        ("parquet", {"_corrupt_record": "string"}, ""),
    ],
)
def test_columns_that_a_format_cannot_fill_are_named(
    kind: str, columns: dict[str, str], why: str
) -> None:
    read = file_read_options({"fileformat": kind})

    with pytest.raises(InvalidSpecError, match=why) if why else nullcontext():
        check_columns(read, columns.items())
    types = {"string": StringType(), "int": IntegerType(), "bigint": LongType()}
    schema = StructType()
    for name, kind_of_column in columns.items():
        schema.add(name, types.get(kind_of_column, BinaryType()))
    # Those of `.schema(...)` of the query are known to tasks alone.
    with pytest.raises(InvalidSpecError, match=why) if why else nullcontext():
        FilesSparkHalf().task_reader(Query(client_id="me", read=read, schema=schema))


def test_columns_may_be_null_whatever_the_schema_says() -> None:
    schema = (
        "`a NOT NULL` INT not  null, s STRUCT<x: INT NOT NULL, y: ARRAY<STRING>> NOT NULL"
        " COMMENT 'is NOT NULL', d DECIMAL(9,2)NOT NULL, NOT_NULL INT"
    )
    read = file_read_options({"fileformat": "json", "schema": schema, "metadatacolumns": "false"})

    assert ddl_of(read) == (
        "`a NOT NULL` INT, s STRUCT<x: INT, y: ARRAY<STRING>> COMMENT 'is NOT NULL',"
        " d DECIMAL(9,2), NOT_NULL INT"
    )


@pytest.mark.parametrize(
    ("kind", "ddl", "wrong"),
    [
        ("json", StructType().add("a", MapType(StringType(), LongType())), "MAP"),
        ("json", StructType().add("a", StructType().add("b", VariantType())), "VARIANT"),
        ("json", StructType().add("a", ArrayType(TimeType())), r"TIME\(6\)"),
        ("csv", StructType().add("a", ArrayType(LongType())), "ARRAY"),
        ("csv", StructType().add("a", StructType().add("b", LongType())), "STRUCT"),
        ("csv", StructType().add("a", DayTimeIntervalType()), "INTERVAL DAY TO SECOND"),
        ("json", StructType().add("a", VarcharType(3)), r"VARCHAR\(3\): make it a STRING"),
        ("json", StructType().add("a", ArrayType(StructType().add("b", TimestampNTZType()))), ""),
        ("csv", StructType().add("a", DecimalType(9, 2)).add("b", StringType("UNICODE")), ""),
        ("csv", StructType().add("a", TimeType()), ""),
        ("parquet", StructType().add("a", MapType(StringType(), LongType())), ""),
        ("parquet", StructType().add("a", VarcharType(3)), r"VARCHAR\(3\): make it a STRING"),
        ("avro", StructType().add("a", MapType(StringType(), CharType(3))), r"CHAR\(3\): make it"),
        (
            "orc",
            StructType().add("a", ArrayType(StructType().add("b", VarcharType(3)))),
            r"VARCHAR\(3\): make it a STRING",
        ),
        ("parquet", StructType().add("a", VariantType()), ""),
    ],
)
def test_types_that_a_format_cannot_have_are_named(kind: str, ddl: StructType, wrong: str) -> None:
    read = file_read_options({"fileformat": kind})
    message = f"format {kind} cannot read column 'a' of type {wrong}"

    with pytest.raises(InvalidSpecError, match=message) if wrong else nullcontext():
        check_types(read, [(field.name, field.dataType.jsonValue()) for field in ddl])
    # Those of `.schema(...)` of the query are known to tasks alone.
    with pytest.raises(InvalidSpecError, match=message) if wrong else nullcontext():
        FilesSparkHalf().task_reader(Query(client_id="me", read=read, schema=ddl))


def test_a_format_without_columns_of_its_own_needs_a_schema() -> None:
    with pytest.raises(InvalidSpecError, match=r"format .* needs the columns") as caught:
        ddl_of(file_read_options({"fileformat": "json"}))

    assert caught.value.field == "option schema"


@pytest.mark.parametrize("paths", ["/in", '"/in"', "[5]", '[""]'])
def test_paths_are_an_array(paths: str) -> None:
    with pytest.raises(InvalidSpecError, match="expected a JSON array of text") as caught:
        parse_options({"connector": "files", "paths": paths, "fileFormat": "text"})

    assert caught.value.field == "option paths"
