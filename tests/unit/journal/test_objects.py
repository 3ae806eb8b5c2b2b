"""A journal in an object store: what its client answers, and what that means."""

from types import SimpleNamespace
from typing import Any

import pytest
from obstore.exceptions import AlreadyExistsError, GenericError, PermissionDeniedError

from balanced_source.documents.journal import JournalRecord, RecordKey
from balanced_source.errors import JournalError
from balanced_source.host.journal import SealResult
from balanced_source_spark.journal_stores import objects as module
from balanced_source_spark.journal_stores.objects import ObjectJournal

S = ("server", "log")
RECORD = JournalRecord(key=RecordKey("j", 7, 2), starts={S: 3}, ends={S: 9})


class Store:
    """Objects by path. `puts_always` stands for one without conditional PUTs."""

    def __init__(self, error: Exception | None = None, *, puts_always: bool = False) -> None:
        self.objects: dict[str, bytes] = {}
        self.error, self.puts_always = error, puts_always

    def put(self, path: str, content: bytes, *, mode: str, use_multipart: bool) -> None:
        assert (mode, use_multipart) == ("create", False)
        if self.error is not None:
            raise self.error
        if path in self.objects and not self.puts_always:
            raise AlreadyExistsError("it is there")
        self.objects[path] = content

    def get(self, path: str) -> Any:
        content = SimpleNamespace(to_bytes=lambda: self.objects[path])
        return SimpleNamespace(bytes=lambda: content)

    def delete(self, path: str) -> None:
        del self.objects[path]


@pytest.fixture(name="use")
def fixture_use(monkeypatch: pytest.MonkeyPatch) -> Any:
    def use(store: Store) -> ObjectJournal:
        monkeypatch.setattr(module, "_client", lambda _: store)
        return ObjectJournal("s3://b/journal")

    return use


def test_a_record_is_sealed_once(use: Any) -> None:
    journal = use(Store())

    assert journal.seal(RECORD) is SealResult.SEALED
    assert journal.seal(RECORD) is SealResult.TAKEN


def test_a_lost_answer_is_unknown_and_never_success(use: Any) -> None:
    """The put may have worked."""
    assert use(Store(GenericError("timed out"))).seal(RECORD) is SealResult.UNKNOWN


def test_a_refusal_is_told_and_not_taken_for_a_lost_answer(use: Any) -> None:
    with pytest.raises(JournalError, match="s3://b/journal cannot be used: no right"):
        use(Store(PermissionDeniedError("no right"))).seal(RECORD)


def test_a_store_that_creates_an_object_twice_is_refused(use: Any) -> None:
    """Two attempts of a task would emit different records."""
    store = Store(puts_always=True)

    with pytest.raises(JournalError, match="cannot create an object only if there is none"):
        use(store)._prove("j")

    assert store.objects == {}
    use(Store())._prove("j")


def test_a_process_has_one_client_of_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its retries end before a task gives up."""
    made: list[tuple[str, dict[str, Any]]] = []

    def from_url(url: str, **given: Any) -> object:
        made.append((url, given))
        return object()

    monkeypatch.setattr(module, "from_url", from_url)
    module._client.cache_clear()
    try:
        first, second = module._client("s3://b/one"), module._client("s3://b/one")
    finally:
        module._client.cache_clear()

    assert first is second is not None
    retries = {"max_retries": module._RETRIES, "retry_timeout": module._RETRY}
    assert made == [("s3://b/one", {"retry_config": retries})]
