"""Notifications of new objects save listings, and lose nothing when they are lost."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from balanced_source.connectors.files import (
    PAGE,
    WHOLE_EVERY,
    WINDOW,
    Cursor,
    File,
    FilesSource,
    Format,
    Key,
    Seen,
    Store,
)
from balanced_source.connectors.files import source as source_module
from balanced_source.connectors.pull import Page
from balanced_source.errors import InvalidSpecError, TransientDiscoveryError
from balanced_source_adapters.files import connector, notifications
from balanced_source_adapters.files.connector import FilesCodec, Lister
from balanced_source_adapters.files.file_store import FileStore
from balanced_source_adapters.files.news import News
from balanced_source_adapters.files.notifications import Notices, Notifications, created
from balanced_source_spark.contract.secrets import QuerySecrets
from balanced_source_spark.options import parse_options

SECOND = 1_000_000_000
QUEUE = "http://queue/1/news"


class Memory(FileStore):
    """Objects, and how often they were listed."""

    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.listings = 0

    def write(self, name: str, at: int) -> None:
        path = f"bucket/in/{name}"
        self.files[path] = File(at * SECOND, path, 9)

    def walk(self, base: str, *, after: str = "", **_: Any) -> Iterator[File]:
        self.listings += 1
        yield from self.files.values()

    def exists(self, base: str) -> bool:
        return True

    def stat(self, path: str) -> File | None:
        return self.files.get(path)

    def open(self, path: str) -> Any:
        raise FileNotFoundError(path)


class Queue:
    """A queue: message → object. Messages stay until they are deleted."""

    def __init__(self) -> None:
        self.messages: dict[str, str] = {}

    def receive(self) -> Notices:
        return Notices(tuple(self.messages.values()), tuple(self.messages))

    def delete(self, receipts: Iterable[str]) -> None:
        for receipt in receipts:
            del self.messages[receipt]


class Scene:
    """A lister of a bucket with notifications, and the cursor that an enumerator stores."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store, self.queue, self.cursor = Memory(), Queue(), None
        monkeypatch.setattr(connector, "store_of", lambda *_: self.store)
        self.opened: list[str] = []
        secrets = QuerySecrets()
        self.lister = Lister(secrets, News(secrets, self.open))  # type: ignore[arg-type]
        self.source = FilesSource(
            paths=("s3://bucket/in",),
            kind_of_file=Format.TEXT,
            discovery_interval=1,
            late=10.0,
            queue=QUEUE,
        )

    def open(self, store: Store, queue: str, secrets: QuerySecrets) -> Queue:
        self.opened.append(queue)
        return self.queue

    def arrives(self, name: str, at: int, *, is_told: bool = True) -> None:
        self.store.write(name, at)
        if is_told:
            self.queue.messages[f"message of {name}"] = f"bucket/in/{name}"

    def look(self, *, is_stored: bool = True) -> list[str]:
        """Return the names of new objects."""
        page: Page[Any] = self.lister(self.source.list_page(1, self.cursor))
        assert page.refusal == ""
        if is_stored:
            self.cursor = page.cursor
        return [str(split.file.path).rpartition("/")[2] for split in page.splits]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    made = Scene(monkeypatch)
    made.arrives("first", 100, is_told=False)
    assert made.look() == ["first"]
    return made


def test_what_a_notification_names_is_read_without_a_listing(scene: Scene) -> None:
    scene.arrives("second", 101)
    scene.arrives("hidden/_third", 101)

    assert scene.look() == ["second"]
    assert scene.look() == []
    assert scene.store.listings == 1


def test_messages_are_deleted_when_what_they_name_is_stored(scene: Scene) -> None:
    scene.arrives("second", 101)

    assert scene.look(is_stored=False) == ["second"]
    assert scene.look() == ["second"]
    assert len(scene.queue.messages) == 1
    assert scene.look() == []
    assert scene.queue.messages == {}


def test_an_object_without_a_notification_is_found_by_the_next_whole_listing(scene: Scene) -> None:
    scene.arrives("untold", 101, is_told=False)
    # So much later that the horizon would have passed the other one.
    scene.arrives("told", 1000)

    found = [name for _ in range(WHOLE_EVERY) for name in scene.look()]

    assert found == ["told", "untold"]
    assert scene.store.listings == 2


def test_a_message_about_a_deleted_object_is_done(scene: Scene) -> None:
    scene.queue.messages["gone"] = "bucket/in/gone"

    assert scene.look() == []
    assert scene.look() == []
    assert scene.queue.messages == {}


@pytest.mark.parametrize("count", [15, 25, 45, 200])
def test_a_long_backlog_is_listed_to_its_end(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Notifications do not name it, and the next whole look may be hours away."""
    monkeypatch.setattr(source_module, "PAGE", 10)
    scene = Scene(monkeypatch)
    for number in range(count):
        scene.arrives(f"{number:04}", 100 + number, is_told=False)

    found, has_more = 0, True
    while has_more:
        page = scene.lister(scene.source.list_page(1, scene.cursor))
        scene.cursor, has_more = page.cursor, page.has_more
        found += len(page.splits)

    assert found == count
    assert scene.look() == []
    scene.arrives("told", 1000)
    listings = scene.store.listings
    assert scene.look() == ["told"]
    assert scene.store.listings == listings


def test_another_queue_takes_the_place_of_the_former_one(scene: Scene) -> None:
    """What the former queue would have said is found by a listing."""
    scene.arrives("second", 101)
    assert scene.look() == ["second"]
    scene.arrives("untold", 102, is_told=False)
    scene.source = replace(scene.source, queue=f"{QUEUE}-2")
    scene.queue.messages.clear()  # of another queue, whose messages must not be deleted here

    assert scene.look() == ["untold"]
    scene.arrives("third", 103)
    assert scene.look() == ["third"]
    assert scene.opened == [QUEUE, f"{QUEUE}-2"]
    assert scene.store.listings == 2


def test_a_queue_that_refuses_is_asked_again_with_the_credentials_of_then(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> Notices:
        raise TransientDiscoveryError("the security token has expired", scope="files")

    with monkeypatch.context() as patch:
        patch.setattr(scene.queue, "receive", refuse)
        with pytest.raises(TransientDiscoveryError, match="expired"):
            scene.look()
    scene.arrives("second", 101)

    assert scene.look() == ["second"]
    assert scene.opened == [QUEUE, QUEUE]


@pytest.mark.parametrize(
    ("names", "listings"), [(WINDOW, 1), (2 * WINDOW - PAGE, 1), (2 * WINDOW - PAGE + 1, 2)]
)
def test_a_window_without_room_for_another_look_asks_for_a_listing(
    scene: Scene, names: int, listings: int
) -> None:
    """A listing may leave `WINDOW` names in it: if that asked for the next one, all would list."""
    window = {number: Seen(100 * SECOND, 1) for number in range(names)}
    scene.cursor = Cursor(horizon=Key(0, ""), window=window).to_json()

    scene.look()

    assert scene.store.listings == listings


def test_a_driver_of_a_former_release_knows_the_call_without_a_queue() -> None:
    source = FilesSource(paths=("s3://bucket/in",), kind_of_file=Format.TEXT)

    assert "queue" not in FilesCodec().call_to_json(source.list_page(1, None))


def test_events_of_s3() -> None:
    def event(name: str, key: str) -> dict[str, Any]:
        return {"eventName": name, "s3": {"bucket": {"name": "b"}, "object": {"key": key}}}

    made, removed = event("ObjectCreated:Put", "a+b/%C3%A9.txt"), event("ObjectRemoved:Delete", "c")
    assert created(json.dumps({"Records": [made, removed]})) == ("b/a b/é.txt",)
    assert created('{"Event": "s3:TestEvent"}') == ()


@pytest.mark.parametrize(
    "other", ["no json", "[]", "[" * 100_000, '{"Message": "{}"}', '{"Records": {"a": 1}}']
)
def test_a_message_of_others_is_not_an_event(other: str) -> None:
    assert created(other) is None


@pytest.mark.parametrize("key", ["5", "null", '"\\ud800"', '{"a": 1}'])
def test_a_record_that_cannot_be_read_hides_no_other(key: str) -> None:
    odd = (
        '{"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": "b"}, "object": {"key": %s}}}'
    )
    records = ", ".join(("{}", "7", odd % key, odd % '"good"'))

    assert created(f'{{"Records": [{records}]}}') == ("b/good",)


def test_an_object_that_cannot_be_looked_at_asks_for_a_listing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> File | None:
        raise OSError(f"{path}: the key is too long")

    scene.arrives("second", 101)
    with monkeypatch.context() as patch:
        patch.setattr(scene.store, "stat", refuse)
        assert scene.look() == ["second"]
    assert scene.store.listings == 2

    assert scene.look() == scene.look() == []
    assert scene.queue.messages == {}


def test_messages_that_are_no_events_are_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [{"Messages": [{"Body": "{}", "ReceiptHandle": str(n)} for n in range(2)]}, {}]
    client = SimpleNamespace(receive_message=lambda **_: answers.pop(0))
    monkeypatch.setattr(notifications, "_client", lambda *_: client)
    reader = Notifications(Store(), QUEUE, QuerySecrets())

    with capture_logs() as logs:
        assert reader.receive() == Notices((), ("0", "1"))

    assert [(entry["queue"], entry["message"]) for entry in logs] == [(QUEUE, "'{}'")]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, "discoveryInterval"),
        ({"discoveryInterval": "1s", "stateDir": "/s", "path": "/in"}, "local files"),
        ({"s3NotificationQueue": "news"}, "URL of a queue"),
    ],
)
def test_options_that_do_not_go_together(more: dict[str, str], why: str) -> None:
    given = {"connector": "files", "path": "s3://b/in", "s3NotificationQueue": QUEUE, **more}

    with pytest.raises(InvalidSpecError, match=why):
        parse_options(given)
