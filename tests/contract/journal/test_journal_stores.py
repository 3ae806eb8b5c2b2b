"""Where journals are kept.

A folder, the object store of the unit tests, an object store behind HTTP.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore, ObjectStore

from balanced_source.errors import JournalError
from balanced_source.host.journal import JournalStore
from balanced_source_spark.journal_stores import objects as journal_objects
from balanced_source_spark.journal_stores.folder import FolderJournal
from balanced_source_spark.journal_stores.objects import ObjectJournal
from contract.suites.journal_store import JournalStoreContract
from support.journal_query import Death, JournalQuery
from support.tapes import Shelf, TapeHalf
from testbed.s3 import BUCKET, s3_server


class TestFolder(JournalStoreContract):
    @pytest.fixture
    def journal(self, tmp_path: Path) -> JournalStore:
        return FolderJournal(tmp_path / "journal")

    def names(self, journal: JournalStore) -> list[str]:
        return sorted(path.name for path in (Path(journal.location) / "j").iterdir())

    def move(self, journal: JournalStore, name: str, to: str) -> None:
        (Path(journal.location) / "j" / name).rename(Path(journal.location) / "j" / to)

    def log(self, journal: JournalStore, number: int, text: str) -> None:
        folder = Path(journal.location).parent / "offsets"
        folder.mkdir(exist_ok=True)
        (folder / str(number)).write_text(text)


class _Objects(JournalStoreContract):
    def names(self, journal: JournalStore) -> list[str]:
        store = journal_objects._client(journal.location)
        return sorted(
            found["path"].rsplit("/", 1)[-1] for page in store.list("j") for found in page
        )

    def move(self, journal: JournalStore, name: str, to: str) -> None:
        journal_objects._client(journal.location).rename(f"j/{name}", f"j/{to}")

    def log(self, journal: JournalStore, number: int, text: str) -> None:
        checkpoint = journal.location.rsplit("/", 1)[0]
        journal_objects._client(f"{checkpoint}/offsets").put(str(number), text.encode())


class TestMemory(_Objects):
    @pytest.fixture
    def journal(self, monkeypatch: pytest.MonkeyPatch) -> JournalStore:
        stores: dict[str, ObjectStore] = {}
        monkeypatch.setattr(
            journal_objects, "_client", lambda url: stores.setdefault(url, MemoryStore())
        )
        journal_objects._known.cache_clear()
        return ObjectJournal("s3://bucket/checkpoint/journal")


@pytest.fixture(scope="module")
def server() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch, s3_server() as environment:
        for name, value in environment.items():
            patch.setenv(name, value)
        journal_objects._client.cache_clear()
        yield


@pytest.mark.integration
@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("death", Death)
def test_every_record_is_delivered_once_with_a_journal_in_s3(tmp_path: Path, death: Death) -> None:
    """The driver dies at each step, before and after a rescale."""
    store = ObjectJournal(f"s3a://{BUCKET}/{death.name}/journal")
    query = JournalQuery(tmp_path, TapeHalf(Shelf(lengths={"a": 9, "b": 9, "c": 9})), store=store)
    try:
        query.trigger_until(lambda: bool(query.records), "the first records")
        query.trigger(die=death)
        query.parallelism = 3
        query.channel.rescale(3)
        query.trigger(die=death)
        query.half.shelf.lengths["a"] += 5
        query.read_all()
    finally:
        query.close()
    assert all(rows == again[0] for again in query.attempts.values() for rows in again), (
        "the same at each replay"
    )


@pytest.mark.integration
@pytest.mark.usefixtures("server")
def test_a_bucket_that_does_not_exist_is_named() -> None:
    with pytest.raises(
        JournalError, match=r"journal s3://nowhere/j cannot be used: .*not found.*Check the bucket"
    ):
        ObjectJournal("s3://nowhere/j").create("j")


@pytest.mark.integration
@pytest.mark.usefixtures("server")
def test_a_store_that_replaces_objects_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some servers that speak S3 take no notice of the condition."""
    client = journal_objects._client(f"s3://{BUCKET}/careless")

    class Careless:
        def put(self, path: str, content: bytes, **_: object) -> object:
            return client.put(path, content, mode="overwrite")

        def __getattr__(self, name: str) -> Any:
            return getattr(client, name)

    monkeypatch.setattr(journal_objects, "_client", lambda _: Careless())
    with pytest.raises(JournalError, match="cannot create an object only if there is none"):
        ObjectJournal(f"s3://{BUCKET}/careless").create("j")


@pytest.mark.integration
@pytest.mark.usefixtures("server")
class TestS3(_Objects):
    @pytest.fixture
    def journal(self, request: pytest.FixtureRequest) -> JournalStore:
        journal_objects._known.cache_clear()
        return ObjectJournal(f"s3a://{BUCKET}/{request.node.name[:60]}/journal")


def test_an_object_store_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: str) -> ObjectStore:
        raise OSError("connection refused.\nrequest id 7")

    monkeypatch.setattr(journal_objects, "_client", fails)
    said = r"journal s3://b/j cannot be used: connection refused\. Check the bucket"
    with pytest.raises(JournalError, match=said):
        ObjectJournal("s3://b/j").newest("j")
