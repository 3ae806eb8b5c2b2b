"""Objects of servers with the interfaces of Google Cloud Storage and of Azure.

Listed by the connector, and read by the reader of a task or by Spark.
"""

import base64
import io
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from pyarrow import orc
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from balanced_source.api import Caller
from balanced_source.connectors.files import FilesSource, Format, Store, reached
from balanced_source.errors import DiscoveryError
from balanced_source.host import SplitRange
from balanced_source_adapters.files.connector import FilesConnector
from balanced_source_adapters.files.inference import inferred_ddl
from balanced_source_adapters.files.stores import store_of
from balanced_source_spark.contract.secrets import QuerySecrets
from balanced_source_spark.files.options import FileReadOptions
from balanced_source_spark.files.task_reader import FileLostError, FilesTaskReader
from balanced_source_spark.partition import ReaderPartition
from support.avro_files import written
from testbed.azure import ACCOUNT, CONTAINER, KEY, AzureBlobs, azure_server, sas_token
from testbed.gcs import BUCKET, GcsBucket, gcs_server

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

VALUE = StructType([StructField("value", StringType()), StructField("_path", StringType())])
IDS = StructType([StructField("id", LongType())])
WRONG = base64.b64encode(b"some other key").decode()


def service_account() -> str:
    """A key of a service account that no one knows."""
    key = rsa.generate_private_key(65537, 2048)
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    members = {"type": "service_account", "client_email": "a@b", "private_key_id": "1"}
    return json.dumps({**members, "private_key": text})


class Scene:
    """A bucket, written by a client of its own, and read as a driver and a task do."""

    def __init__(self, server: AzureBlobs | GcsBucket, root: str, folder: Path) -> None:
        self.server, self.root, self.folder = server, root, folder
        self.secrets = QuerySecrets(folder=folder)
        self.store = Store(
            endpoint=server.endpoint,
            account=ACCOUNT if root.startswith("az") else "",
            secret="good",  # noqa: S106 - a name
        )

    def secret(self, name: str, **keys: str) -> None:
        folder = self.folder / name
        folder.mkdir()
        for key, value in keys.items():
            (folder / key).write_text(value)

    def source(self, pattern: str, **more: Any) -> FilesSource:
        paths = (f"{self.root}/{pattern}",)
        given = {
            "paths": paths,
            "kind_of_file": Format.TEXT,
            "store": reached(self.store, paths),
            "split_bytes": 500,
        }
        return FilesSource(**{**given, **more})

    def listed(self, pattern: str, **more: Any) -> ReaderPartition:
        """List objects, and return all of their blocks as the share of one reader."""
        source = self.source(pattern, **more)
        page = FilesConnector().executor(self.secrets, caller=Caller.OWNER, client_id="test")(
            source.list_page(1, None)
        )
        ranges = tuple(
            SplitRange(split_id=s.split_id, start=s.begin, end=s.stop, identity=s.file.identity)
            for s in page.splits
        )
        return ReaderPartition(subtask_id=0, ranges=ranges, settings=source.reader_settings())

    def rows(
        self, share: ReaderPartition, columns: StructType = VALUE, **read: Any
    ) -> list[dict[str, Any]]:
        options = FileReadOptions(**{"kind": Format.TEXT, **read})
        reader = FilesTaskReader(options, columns, self.secrets)
        return [row for batch in reader.read(share) for row in batch.to_pylist()]


@pytest.fixture(scope="module", params=["gs", "az"])
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("secrets")
    with ExitStack() as stack:
        if request.param == "gs":
            bucket = stack.enter_context(gcs_server())
            made = Scene(bucket, f"gs://{BUCKET}", folder)
            made.secret("good", serviceAccount=service_account())
        else:
            blobs = stack.enter_context(azure_server())
            made = Scene(blobs, f"az://{CONTAINER}", folder)
            made.secret("good", accountKey=KEY)
        for name in range(3):
            lines = "".join(f"{name}-{line}\n" for line in range(200))
            made.server.write(f"in/day={name}/part+#%20é.txt", lines.encode())
        made.server.write("in/_marker.txt", b"hidden")
        made.server.write("other/x.txt", b"elsewhere")
        yield made


def test_lines_of_objects_are_read_once_in_blocks(scene: Scene) -> None:
    share = scene.listed("in/**/*.txt")
    rows = scene.rows(share)

    assert len(share.ranges) == 6
    assert sorted(row["value"] for row in rows) == sorted(
        f"{name}-{line}" for name in range(3) for line in range(200)
    )
    names = {f"{BUCKET}/in/day={name}/part+#%20é.txt" for name in range(3)}
    assert {row["_path"] for row in rows} == names


@pytest.mark.parametrize("kind", [Format.PARQUET, Format.ORC, Format.AVRO])
def test_blocks_of_files_with_columns_are_read_once(scene: Scene, kind: Format) -> None:
    count, buffer = 5000, io.BytesIO()
    table = pa.table({"id": list(range(count)), "text": ["x" * (n % 70) for n in range(count)]})
    match kind:
        case Format.PARQUET:
            pq.write_table(table, buffer, row_group_size=500)
        case Format.ORC:
            orc.write_table(table, buffer, stripe_size=1024)
        case _:
            buffer.write(written(table.to_pylist(), codec="snappy", block=3000))
    scene.server.write(f"tables/{kind}/a.{kind}", buffer.getvalue())

    share = scene.listed(f"tables/{kind}", kind_of_file=kind, split_bytes=5000)
    rows = scene.rows(share, IDS, kind=kind)
    call = scene.source(f"tables/{kind}", kind_of_file=kind).list_page(1, None)

    assert len(share.ranges) > 2
    assert sorted(row["id"] for row in rows) == list(range(count))
    ddl = inferred_ddl(call, scene.secrets)
    assert ddl == "id BIGINT, text STRING"


def test_an_object_that_changes_or_vanishes_is_noticed(scene: Scene) -> None:
    scene.server.write("changing/a.txt", b"one\n")
    share = scene.listed("changing")
    scene.server.write("changing/a.txt", b"another\n")
    with pytest.raises(FileLostError, match="was changed"):
        scene.rows(share)
    scene.server.delete("changing/a.txt")
    with pytest.raises(FileLostError, match="was deleted"):
        scene.rows(share)


def test_listing_can_begin_after_a_name(scene: Scene) -> None:
    for number in range(20):
        scene.server.write(f"growing/{number:05}.txt", b"x\n")
    source = scene.source("growing")
    store = store_of(source.store, source.paths, scene.secrets)

    found = store.walk(f"{BUCKET}/growing", after=f"{BUCKET}/growing/00017.txt")
    assert [file.path for file in found] == [f"{BUCKET}/growing/{n:05}.txt" for n in (18, 19)]
    assert store.is_ordered is scene.root.startswith("gs")


def test_mistakes_are_reported(scene: Scene) -> None:
    with pytest.raises(DiscoveryError, match="does not exist"):
        scene.listed("nothing")
    other = scene.source("in", paths=(scene.root.replace("balanced", "nowhere") + "/in",))
    with pytest.raises(DiscoveryError, match=r"nowhere/in: .*(404|500) .*Check bucket, endpoint"):
        FilesConnector().executor(scene.secrets, caller=Caller.OWNER, client_id="test")(
            other.list_page(1, None)
        )


def test_wrong_credentials_are_a_sentence_that_does_not_quote_them(tmp_path: Path) -> None:
    with azure_server() as blobs:
        scene = Scene(blobs, f"az://{CONTAINER}", tmp_path)
        blobs.write("in/a.txt", b"one\n")
        scene.secret("signed", sasToken=sas_token())
        scene.secret("key", accountKey=WRONG)
        scene.secret("signature", sasToken=sas_token(WRONG))

        def share(secret: str) -> ReaderPartition:
            return scene.listed("in", store=replace(scene.store, secret=secret))

        assert len(scene.rows(share("signed"))) == 1
        for name in ("key", "signature"):
            with pytest.raises(DiscoveryError) as caught:
                share(name)

            said = str(caught.value)
            assert said.startswith(f"cannot look at az://{CONTAINER}/in: The operation lacked")
            assert said.endswith("403 Forbidden. Check bucket, endpoint and credentials")
            assert caught.value.__cause__ is None
            assert WRONG not in said
            assert "sig=" not in repr(caught.value)


def test_a_stream_reads_each_object_once_over_restarts(
    scene: Scene, spark: SparkSession, tmp_path: Path
) -> None:
    prefix = "gcs" if scene.root.startswith("gs") else "azure"
    account = {"azureAccount": ACCOUNT} if prefix == "azure" else {}
    options = {
        "connector": "files",
        "parallelism": "2",
        "splitBytes": "1000",
        "stateDir": str(tmp_path / "state"),
        "secretsDir": str(scene.folder),
        f"{prefix}Endpoint": scene.server.endpoint,
        f"{prefix}Secret": "good",
        **account,
    }

    def run() -> list[str]:
        rows = spark.readStream.format("balanced").options(**options).load(f"{scene.root}/stream/*")
        writer = rows.writeStream.format("parquet").option("path", str(tmp_path / "rows"))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
        return sorted(row["value"] for row in spark.read.parquet(str(tmp_path / "rows")).collect())

    lines = [f"{line:04}" for line in range(600)]
    scene.server.write("stream/a.txt", "".join(f"{line}\n" for line in lines[:400]).encode())
    first = run()
    scene.server.write("stream/b.txt", "".join(f"{line}\n" for line in lines[400:]).encode())

    assert (first, run()) == (lines[:400], lines)
