"""Objects of a real S3-compatible server.

Listed by the connector, and read by the reader of a task.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import S3FileSystem
from pyspark.sql.types import LongType, StringType, StructField, StructType

from balanced_source.api import Caller
from balanced_source.connectors.files import FilesSource, Format, Store
from balanced_source.errors import DiscoveryError, RefusedDiscoveryError
from balanced_source.host import SplitRange
from balanced_source_adapters.files.connector import FilesConnector, listed
from balanced_source_adapters.files.file_store import FileStore, WantedFiles
from balanced_source_adapters.files.stores import store_of
from balanced_source_spark.contract.secrets import QuerySecrets
from balanced_source_spark.files.options import FileReadOptions
from balanced_source_spark.files.task_reader import FileLostError, FilesTaskReader
from balanced_source_spark.partition import ReaderPartition
from support.avro_files import written
from testbed.s3 import BUCKET, s3_server

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

VALUE = StructType([StructField("value", StringType()), StructField("_path", StringType())])


class Bucket:
    """A bucket, written by a client of its own, and read as a driver and a task do."""

    def __init__(self, endpoint: str, secrets: Path) -> None:
        # A name
        self.store = Store(endpoint=endpoint, region="us-east-1", secret="store")  # noqa: S106
        self._secrets = QuerySecrets(folder=secrets)
        key = "test"  # the server takes any
        self._client = S3FileSystem(
            access_key=key,
            secret_key=key,
            endpoint_override=endpoint.removeprefix("http://"),
            scheme="http",
        )

    def write(self, key: str, content: bytes) -> None:
        with self._client.open_output_stream(f"{BUCKET}/{key}") as file:
            file.write(content)

    def delete(self, key: str) -> None:
        self._client.delete_file(f"{BUCKET}/{key}")

    def listed(self, pattern: str, **more: Any) -> ReaderPartition:
        """List objects, and return all of their blocks as the share of one reader."""
        source = FilesSource(
            **{
                "paths": (pattern,),
                "kind_of_file": Format.TEXT,
                "store": self.store,
                "split_bytes": 500,
                **more,
            }
        )
        page = FilesConnector().executor(self._secrets, caller=Caller.OWNER, client_id="test")(
            source.list_page(1, None)
        )
        ranges = tuple(
            SplitRange(split_id=s.split_id, start=s.begin, end=s.stop, identity=s.file.identity)
            for s in page.splits
        )
        return ReaderPartition(subtask_id=0, ranges=ranges, settings=source.reader_settings())

    def opened(self) -> FileStore:
        return store_of(self.store, ("s3://",), self._secrets)

    def rows(
        self, share: ReaderPartition, columns: StructType = VALUE, **read: Any
    ) -> list[dict[str, Any]]:
        reader = FilesTaskReader(
            FileReadOptions(**{"kind": Format.TEXT, **read}), columns, self._secrets
        )
        return [row for batch in reader.read(share) for row in batch.to_pylist()]


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "store").mkdir()
    (folder / "store" / "accessKeyId").write_text("test")
    (folder / "store" / "secretAccessKey").write_text("test")
    with s3_server() as environment:
        made = Bucket(environment["AWS_ENDPOINT_URL"], folder)
        for name in range(3):
            made.write(
                f"in/day={name}/part.txt",
                "".join(f"{name}-{line}\n" for line in range(200)).encode(),
            )
        made.write("in/_marker.txt", b"hidden")
        made.write("other/x.txt", b"elsewhere")
        yield made


def test_lines_of_objects_are_read_once_in_blocks(bucket: Bucket) -> None:
    share = bucket.listed(f"s3://{BUCKET}/in/**/*.txt")
    rows = bucket.rows(share)

    assert len(share.ranges) == 6
    assert sorted(row["value"] for row in rows) == sorted(
        f"{name}-{line}" for name in range(3) for line in range(200)
    )
    assert {row["_path"] for row in rows} == {
        f"{BUCKET}/in/day={name}/part.txt" for name in range(3)
    }


def test_row_groups_of_objects_are_read_once_in_blocks(bucket: Bucket, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": list(range(1000))}), tmp_path / "a.parquet", row_group_size=100)
    bucket.write("tables/a.parquet", (tmp_path / "a.parquet").read_bytes())

    share = bucket.listed(f"s3://{BUCKET}/tables", kind_of_file=Format.PARQUET, split_bytes=1000)
    rows = bucket.rows(share, StructType([StructField("id", LongType())]), kind=Format.PARQUET)

    assert len(share.ranges) > 2
    assert sorted(row["id"] for row in rows) == list(range(1000))


def test_blocks_of_avro_objects_are_read_once(bucket: Bucket) -> None:
    records = [{"id": number, "text": "x" * (number % 30)} for number in range(1000)]
    bucket.write("avro/a.avro", written(records, codec="snappy", block=300))

    share = bucket.listed(f"s3://{BUCKET}/avro", kind_of_file=Format.AVRO, split_bytes=1000)
    rows = bucket.rows(share, StructType([StructField("id", LongType())]), kind=Format.AVRO)

    assert len(share.ranges) > 2
    assert [row["id"] for row in rows] == list(range(1000))


def test_an_object_that_changes_or_vanishes_is_noticed(bucket: Bucket) -> None:
    bucket.write("changing/a.txt", b"one\n")
    share = bucket.listed(f"s3://{BUCKET}/changing")
    bucket.write("changing/a.txt", b"another\n")
    with pytest.raises(FileLostError, match="was changed"):
        bucket.rows(share)
    bucket.delete("changing/a.txt")
    with pytest.raises(FileLostError, match="was deleted"):
        bucket.rows(share)


def test_mistakes_are_reported(bucket: Bucket) -> None:
    with pytest.raises(DiscoveryError, match="does not exist"):
        bucket.listed(f"s3://{BUCKET}/nothing")
    with pytest.raises(DiscoveryError, match="Secret other is missing"):
        bucket.listed(f"s3://{BUCKET}/in", store=Store(secret="other"))  # noqa: S106 - a name
    with pytest.raises(DiscoveryError, match=r"nowhere.*(does not exist|cannot list)|cannot list"):
        bucket.listed("s3://nowhere/in")


def test_an_empty_object_may_stand_for_a_folder(bucket: Bucket) -> None:
    bucket.write("marked/a.txt", b"one\n")
    httpx2.put(f"{bucket.store.endpoint}/{BUCKET}/marked", content=b"").raise_for_status()

    rows = bucket.rows(bucket.listed(f"s3://{BUCKET}/marked"))

    assert [row["value"] for row in rows] == ["one"]


def test_an_object_with_an_illegal_name_is_named(bucket: Bucket) -> None:
    httpx2.put(f"{bucket.store.endpoint}/{BUCKET}/odd/a//b", content=b"x").raise_for_status()

    with pytest.raises(RefusedDiscoveryError, match=r'"odd/a//b" contained.*Rename this object'):
        bucket.listed(f"s3://{BUCKET}/odd")


def test_listing_can_begin_after_a_name(bucket: Bucket) -> None:
    """1,200 objects need two requests.

    Where names grow, a look lists only those after the floor.
    """
    for number in range(1200):
        bucket.write(f"growing/{number:05}.txt", b"x\n")
    source = FilesSource(
        paths=(f"s3://{BUCKET}/growing",),
        kind_of_file=Format.TEXT,
        store=bucket.store,
        names_grow=True,
    )
    call = source.list_page(1, None)
    store = bucket.opened()

    assert len(list(listed(call, store))) == 1200
    found = [file.path for file in listed(call, store, after=f"{BUCKET}/growing/01197.txt")]
    assert found == [f"{BUCKET}/growing/{number:05}.txt" for number in (1198, 1199)]


def test_a_listing_has_only_names_that_begin_as_the_pattern_does(bucket: Bucket) -> None:
    for number in range(1200):
        bucket.write(f"named/{number:05}.txt", b"x\n")
    bucket.write("named/011", b"exactly\n")
    pattern = f"s3://{BUCKET}/named/011*"
    source = FilesSource(paths=(pattern,), kind_of_file=Format.TEXT, store=bucket.store)
    store = bucket.opened()

    walked = [
        file.path
        for file in store.walk(f"{BUCKET}/named", wanted=WantedFiles(begins=f"{BUCKET}/named/011"))
    ]
    found = [file.path for file in listed(source.list_page(1, None), store)]

    wanted = ["named/011", *(f"named/{number:05}.txt" for number in range(1100, 1200))]
    assert found == walked == [f"{BUCKET}/{name}" for name in wanted]
