"""Stores of files: which files there are, when they were changed, and what cannot be listed."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore import exceptions

from balanced_source.connectors.files.settings import Store
from balanced_source.connectors.files.split import File
from balanced_source.errors import RefusedDiscoveryError, TransientDiscoveryError
from balanced_source_adapters.files import notifications, stores
from balanced_source_adapters.files.file_store import WantedFiles
from balanced_source_adapters.files.notifications import Notifications, created
from balanced_source_adapters.files.stores import LocalStore, S3Store, inner, store_of

KEYS = {"accessKeyId": "AKIA", "secretAccessKey": "hidden", "sessionToken": "t"}


class Secrets:
    def read(self, name: str) -> Mapping[str, str]:
        return KEYS


def test_all_files_below_a_folder_are_listed(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("one", "a/two", "a/b/three"):
        (tmp_path / name).write_text(name)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    store = LocalStore()

    found = {file.path: file.size for file in store.walk(str(tmp_path))}

    assert found == {str(tmp_path / name): len(name) for name in ("one", "a/two", "a/b/three")}
    (only,) = store.walk(str(tmp_path / "one"))
    assert only == store.stat(str(tmp_path / "one"))
    assert only.modified == (tmp_path / "one").stat().st_mtime_ns
    assert list(store.walk(str(tmp_path / "nothing"))) == []
    assert list(store.walk(str(tmp_path / "pipe"))) == []
    assert store.stat(str(tmp_path / "nothing")) is None
    assert store.exists(str(tmp_path / "a"))
    assert not store.exists(str(tmp_path / "nothing"))
    with store.open(str(tmp_path / "one")) as opened:
        assert opened.read() == b"one"


def test_a_link_that_leads_back_is_named(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("x")
    (tmp_path / "again").symlink_to(tmp_path)

    with pytest.raises(RefusedDiscoveryError, match=r"Too many levels.*Remove the link that leads"):
        list(LocalStore().walk(str(tmp_path)))


@pytest.mark.parametrize("function", ["stat", "scandir"])
def test_a_folder_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(stores.os, function, refuse)

    with pytest.raises(
        RefusedDiscoveryError, match=r"cannot list .*: Permission denied\. Give the driver's user"
    ):
        list(LocalStore().walk(str(tmp_path)))


@pytest.mark.parametrize(("gone", "left"), [("a", "b"), ("b", "a")])
def test_a_folder_that_vanishes_while_it_is_listed_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: str, left: str
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("x")
    scandir = os.scandir

    def vanishing(folder: str) -> Any:
        if folder.endswith(f"/{gone}"):
            raise FileNotFoundError(folder)
        return scandir(folder)

    monkeypatch.setattr(stores.os, "scandir", vanishing)

    assert [file.path for file in LocalStore().walk(str(tmp_path))] == [
        str(tmp_path / left / "file")
    ]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/in/a", "/in/a"),
        ("file:/in/a%20b", "/in/a b"),
        ("file:///in/a", "/in/a"),
        ("s3://bucket/in/", "bucket/in"),
        ("s3a://bucket/in", "bucket/in"),
        ("gs://bucket/in/", "bucket/in"),
        ("az://container/in", "container/in"),
        ("abfss://container@account.dfs.core.windows.net/in/*", "container/in/*"),
        ("abfss://container@account.dfs.core.windows.net", "container"),
        ("hdfs://namenode:8020/in/", "/in"),
        ("hdfs:///in", "/in"),
    ],
)
def test_a_path_in_the_form_of_its_store(path: str, expected: str) -> None:
    assert inner(path) == expected


@pytest.mark.parametrize(
    ("path", "says"), [("in/a", "is relative"), ("ftp://x/in", "supported are absolute paths")]
)
def test_other_paths_are_rejected(path: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        inner(path)


class Bucket:
    """A client of pyarrow over some objects."""

    def __init__(self, *objects: str) -> None:
        self.objects = objects
        self.error: OSError | None = None
        self.modified: int | None = 5_900_000_000

    def get_file_info(self, path: str) -> Any:
        from pyarrow.fs import FileType

        if self.error is not None:
            raise self.error
        is_there = path in self.objects
        is_folder = any(name.startswith(f"{path}/") for name in self.objects)
        kind = FileType.File if is_there else FileType.Directory if is_folder else None
        return SimpleNamespace(
            type=kind or FileType.NotFound, path=path, size=3, mtime_ns=self.modified
        )

    def open_input_file(self, path: str) -> str:
        return f"opened {path}"


def test_times_of_objects_are_cut_to_seconds_like_those_of_a_listing() -> None:
    """Otherwise an object would seem to have changed since it was listed."""
    bucket: Any = Bucket("bucket/in/a")
    store = S3Store(bucket, {})
    found = File(5_000_000_000, "bucket/in/a", 3)

    assert list(store.walk("bucket/in/a/")) == [found]
    assert store.stat("bucket/in/a") == found
    bucket.modified = None
    assert store.stat("bucket/in/a") == File(0, "bucket/in/a", 3), "a store that knows no time"
    assert store.stat("bucket/in") is None
    assert store.exists("/bucket/in/")
    assert not store.exists("bucket/out")
    opened: Any = store.open("bucket/in/a")
    assert opened == "opened bucket/in/a"


def test_objects_below_a_prefix_are_listed_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    obstore = pytest.importorskip("obstore")
    import datetime as dt

    asked: list[Any] = []

    def pages(_client: Any, prefix: str | None, *, offset: str | None, **_: Any) -> Any:
        asked.append((prefix, offset))
        at = dt.datetime.fromtimestamp(5.9, dt.UTC)
        for names in (("in/a", "in/b"), ("in/c",)):
            yield [{"path": name, "last_modified": at, "size": 3} for name in names]

    monkeypatch.setattr(obstore, "list", pages)
    bucket: Any = Bucket("bucket/in/a")
    store = S3Store(bucket, {"region": "eu-west-1"})

    found = list(store.walk("bucket/in"))
    assert found == [File(5_000_000_000, f"bucket/in/{name}", 3) for name in "abc"]
    assert len(list(store.walk("bucket/in", after="bucket/in/a"))) == 2, (
        "no server need take a start"
    )
    list(store.walk("bucket"))
    assert asked == [("in", None), ("in", "in/a"), (None, None)]


def test_a_bucket_that_cannot_be_listed_is_named() -> None:
    bucket: Any = Bucket()
    bucket.error = OSError("no answer\nrequest 7")
    store = S3Store(bucket, {})

    with pytest.raises(
        TransientDiscoveryError, match=r"cannot list s3://bucket/in: no answer\. Check bucket"
    ):
        list(store.walk("bucket/in"))
    bucket.error = OSError()
    with pytest.raises(TransientDiscoveryError, match=r"s3://bucket/in: OSError\. Check"):
        list(store.walk("bucket/in"))


def test_an_object_does_not_hide_those_below_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    obstore = pytest.importorskip("obstore")
    import datetime as dt

    at = dt.datetime.fromtimestamp(5, dt.UTC)
    page = [{"path": "logs/a", "last_modified": at, "size": 3}]
    monkeypatch.setattr(obstore, "list", lambda *_, **__: iter([page]))
    bucket: Any = Bucket("bucket/logs", "bucket/logs/a")
    store = S3Store(bucket, {"region": "x"})

    assert [file.path for file in store.walk("bucket/logs", wanted=WantedFiles(below=True))] == [
        "bucket/logs/a"
    ]
    assert [file.path for file in store.walk("bucket/logs")] == ["bucket/logs"], "named itself"


def test_a_look_at_an_object_before_the_listing_may_fail() -> None:
    class Restarting(Bucket):
        def get_file_info(self, path: str) -> Any:
            if path == "bucket/in/2026-":
                raise OSError("no answer")
            return super().get_file_info(path)

    bucket: Any = Restarting("bucket/in/2026-11")

    with pytest.raises(TransientDiscoveryError, match=r"cannot list s3://bucket/in: no answer\."):
        list(S3Store(bucket, {}).walk("bucket/in", wanted=WantedFiles(begins="bucket/in/2026-")))


def test_the_clients_of_a_store_get_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import fs

    made: list[dict[str, Any]] = []
    monkeypatch.setattr(fs, "S3FileSystem", lambda **options: made.append(options))
    full = Store(region="eu-west-1", endpoint="http://minio:9000", secret="keys")  # noqa: S106 - a name

    store: Any = store_of(full, ("/local", "s3://bucket/in"), Secrets())
    bare: Any = store_of(Store(), ("s3://bucket/in",), Secrets())

    assert made == [
        {
            "access_key": "AKIA",
            "secret_key": "hidden",
            "session_token": "t",
            "region": "eu-west-1",
            "endpoint_override": "minio:9000",
            "scheme": "http",
        },
        {},
    ]
    listing = store._options
    assert listing["endpoint"] == "http://minio:9000"
    assert listing["client_options"] == {"allow_http": True}
    assert listing["region"] == "eu-west-1"
    assert listing["credential_provider"]() == {
        "access_key_id": "AKIA",
        "secret_access_key": "hidden",
        "token": "t",
        "expires_at": None,
    }
    assert bare._options == {}


class Queue:
    """A client of SQS with pages of messages."""

    def __init__(self, *pages: list[dict[str, str]]) -> None:
        self.pages = [*pages]
        self.asked: list[dict[str, Any]] = []
        self.deleted: list[str] = []

    def receive_message(self, **question: Any) -> Any:
        self.asked.append(question)
        return {"Messages": self.pages.pop(0)} if self.pages else {}

    def delete_message(self, *, QueueUrl: str, ReceiptHandle: str) -> None:  # noqa: N803 - AWS
        self.deleted.append(ReceiptHandle)


def event(*keys: str, name: str = "ObjectCreated:Put") -> str:
    records = [
        {"eventName": name, "s3": {"bucket": {"name": "b"}, "object": {"key": key}}} for key in keys
    ]
    return json.dumps({"Records": records})


def notices_of(monkeypatch: pytest.MonkeyPatch, queue: Any) -> Notifications:
    monkeypatch.setattr(notifications, "_client", lambda *_: queue)
    return Notifications(Store(), "https://queue/1", Secrets())


def test_messages_are_received_until_none_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue(
        [{"ReceiptHandle": "1", "Body": event("a", "b+c")}, {"ReceiptHandle": "2", "Body": "?"}],
        [{"ReceiptHandle": "3", "Body": event("a", "d")}],
    )
    found = notices_of(monkeypatch, queue)

    notices = found.receive()
    found.delete(notices.receipts)

    assert notices.paths == ("b/a", "b/b c", "b/d")
    assert notices.receipts == ("1", "2", "3")
    assert queue.deleted == ["1", "2", "3"]
    assert len(queue.asked) == 3
    assert queue.asked[0]["QueueUrl"] == "https://queue/1"


def test_a_long_queue_is_left_for_the_next_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "REQUESTS", 2)
    queue = Queue(*[[{"ReceiptHandle": str(n), "Body": event(str(n))}] for n in range(5)])

    assert notices_of(monkeypatch, queue).receive().receipts == ("0", "1")


def test_a_queue_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> None:
        raise exceptions.EndpointConnectionError(endpoint_url="https://queue")

    queue = SimpleNamespace(receive_message=refuse, delete_message=refuse)
    found = notices_of(monkeypatch, queue)

    for ask in (found.receive, lambda: found.delete(["1"])):
        with pytest.raises(
            TransientDiscoveryError, match=r"from the queue https://queue/1: .*Check its URL"
        ):
            ask()


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        (event("a"), ("b/a",)),
        (event("a", name="ObjectRemoved:Delete"), ()),
        ('{"Event": "s3:TestEvent"}', ()),
        ('{"Records": [{"eventName": "ObjectCreated:Put"}]}', ()),
        ('{"Records": 5}', None),
        ("no JSON", None),
    ],
)
def test_only_created_objects_are_news(body: str, paths: tuple[str, ...] | None) -> None:
    assert created(body) == paths


@pytest.mark.parametrize(
    ("queue", "region", "expected"),
    [
        ("https://sqs.eu-west-1.amazonaws.com/1/q", "", "eu-west-1"),
        ("https://sqs.eu-west-1.amazonaws.com/1/q", "us-east-1", "us-east-1"),
        ("http://queue.local:4566/1/q", "", None),
        ("http://sqs.local.internal/1/q", "", None),
    ],
)
def test_the_region_of_a_queue_is_that_of_its_host(
    monkeypatch: pytest.MonkeyPatch, queue: str, region: str, expected: str | None
) -> None:
    import botocore.session

    made: list[dict[str, Any]] = []
    credentials: list[tuple[Any, ...]] = []

    class Session:
        def set_credentials(self, *given: Any) -> None:
            credentials.append(given)

        def create_client(self, name: str, **options: Any) -> None:
            made.append({"name": name, **options})

    monkeypatch.setattr(botocore.session, "Session", Session)

    Notifications(Store(region=region, secret="keys"), queue, Secrets())  # noqa: S106 - a name
    Notifications(Store(region=region), queue, Secrets())

    assert [one["region_name"] for one in made] == [expected] * 2
    assert {one["endpoint_url"] for one in made} == {queue.removesuffix("/1/q")}
    assert credentials == [("AKIA", "hidden", "t")]


def test_a_file_in_the_place_of_a_folder_means_that_what_was_in_it_is_gone(tmp_path: Path) -> None:
    (tmp_path / "day").write_text("no folder any more")

    assert LocalStore().stat(str(tmp_path / "day" / "a")) is None


@pytest.mark.parametrize(
    ("why", "error", "text"),
    [
        ("no answer\nrequest 7", TransientDiscoveryError, r"no answer\. Check bucket, region"),
        (stores.ILLEGAL, RefusedDiscoveryError, "Rename"),
    ],
)
def test_objects_that_cannot_be_listed_are_named(
    monkeypatch: pytest.MonkeyPatch, why: str, error: type[Exception], text: str
) -> None:
    obstore = pytest.importorskip("obstore")

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(why)

    monkeypatch.setattr(obstore, "list", refuse)
    bucket: Any = Bucket("bucket/in/a")
    store = S3Store(bucket, {"region": "x"})
    with pytest.raises(error, match=rf"cannot list s3://bucket/in: (.|\n)*{text}"):
        list(store.walk("bucket/in"))
