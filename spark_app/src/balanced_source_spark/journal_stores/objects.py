"""Journals in an object store.

A record is an object that is put only if there is none (a conditional PUT).

S3, Google Cloud Storage and Azure offer that; a store that only looks like one of them may not, so
a journal is made after a proof. A put that was repeated after a lost answer may find its own
object: then reading it back tells.

Endpoint and credentials are those of the process: the variables of its environment (``AWS_…``,
``GOOGLE_…``, ``AZURE_…``), or the identity that the cloud gives to the pod. Driver and executors
need the same.
"""

import contextlib
import uuid
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import ObjectStore, from_url

from balanced_source.documents.journal import JournalRecord, RecordKey, decode, encode
from balanced_source.errors import ForeignJournalError, JournalError
from balanced_source.host.journal import SealResult
from balanced_source_spark.journal_stores.naming import (
    MARKER,
    OFFSETS,
    SUFFIX,
    entries,
    foreign,
    home_of,
    name_of,
    newest_entry,
    number_of,
)

if TYPE_CHECKING:
    from obstore import ObjectMeta

_RETRIES: Final = 3
_RETRY: Final = timedelta(seconds=30)
"""Longest time of one request with its retries: a task waits for it, and planning asks in a thread
of its own."""

_ERRORS: Final = (BaseError, OSError, ValueError)
"""What the client raises; a missing object or bucket is a FileNotFoundError."""

_CERTAIN: Final = (
    PermissionDeniedError,
    UnauthenticatedError,
    NotSupportedError,
    FileNotFoundError,
)
"""Answers of the store: nothing was created."""


@dataclass(frozen=True, slots=True)
class ObjectJournal:
    """See `balanced_source.host.journal.JournalStore`.

    Attributes:
        url: of the place where the journals are, such as ``s3://bucket/prefix``.
    """

    url: str

    @property
    def location(self) -> str:
        return self.url

    def create(self, journal: str) -> None:
        home = home_of(journal)
        with self._errors():
            # Before the marker: a task that sees the marker may rely on conditional puts.
            self._prove(home)
            self._put(f"{home}/{MARKER}", f"journal {journal} of Balanced Source\n")

    def check(self, journal: str) -> None:
        _known.cache_clear()
        with self._errors():
            is_here = _known(self.url, home_of(journal))
        if not is_here:
            raise foreign(journal, self.url)

    def newest(self, journal: str) -> int:
        with self._errors():
            return max((number_of(_last(path)) for path in self._records(journal)), default=0)

    def newest_offsets(self) -> str | None:
        log = self._log()
        try:
            newest = newest_entry(_last(found["path"]) for page in log.list() for found in page)
            return None if newest is None else log.get(newest).bytes().to_bytes().decode("utf-8")
        except _ERRORS:
            return None

    def logged_batches(self) -> int:
        with self._errors():
            return entries(_last(found["path"]) for page in self._log().list() for found in page)

    def read(self, key: RecordKey) -> JournalRecord | None:
        with self._errors():
            try:
                content = _client(self.url).get(_path(key)).bytes().to_bytes()
            except FileNotFoundError:
                self._check_reachable(key.journal)
                return None
        return decode(content.decode("utf-8"), source=key.journal, key=key)

    def seal(self, record: JournalRecord) -> SealResult:
        try:
            is_created = self._put(_path(record.key), encode(record, source=record.key.journal))
        # The store has refused: nothing was created, so there is nothing to read back.
        except _CERTAIN as error:
            raise self._unusable(error) from error
        except _ERRORS:
            # The put may have worked and only its answer be lost.
            return SealResult.UNKNOWN
        return SealResult.SEALED if is_created else SealResult.TAKEN

    def delete_below(self, journal: str, number: int) -> None:
        """See `Journal`; what cannot be deleted is left for the next time."""
        with contextlib.suppress(*_ERRORS):
            old = [path for path in self._records(journal) if number_of(_last(path)) < number]
            if old:
                _client(self.url).delete(old)

    def delete_made_before(self, prefix: str, time: float) -> None:
        """See `JournalStore`.

        The marker goes first: without it, no task begins a range that others have emitted.
        """
        with contextlib.suppress(*_ERRORS):
            homes = defaultdict[str, dict[str, float]](dict)
            for found in self._listed():
                home, _, name = found["path"].rpartition("/")
                if _last(home).startswith(prefix):
                    homes[home][name] = found["last_modified"].timestamp()
            for home, times in homes.items():
                if times.get(MARKER, max(times.values())) < time:
                    names = sorted(times, key=lambda name: name != MARKER)
                    # In a request of its own: one request deletes in any order.
                    _client(self.url).delete([f"{home}/{names[0]}"])
                    _client(self.url).delete([f"{home}/{name}" for name in names[1:]])

    def _log(self) -> ObjectStore:
        return _client(f"{self.url.rstrip('/').rsplit('/', 1)[0]}/{OFFSETS}")

    def _listed(self) -> Iterator["ObjectMeta"]:
        for page in _client(self.url).list():
            yield from page

    def _records(self, journal: str) -> Iterator[str]:
        for page in _client(self.url).list(home_of(journal)):
            for found in page:
                if _last(found["path"])[:1].isdigit() and found["path"].endswith(SUFFIX):
                    yield found["path"]

    def _check_reachable(self, journal: str) -> None:
        """No record, or another bucket.

        A record that is not seen may exist.
        """
        if not _known(self.url, home_of(journal)):
            _known.cache_clear()
            raise JournalError(
                f"journal {journal} is not in {self.url}: the driver and all executors must see the"
                " same place. Give them the same endpoint and credentials"
            )

    def _prove(self, home: str) -> None:
        """Create an object twice.

        Where that works twice, two attempts would emit different records.
        """
        probe = f"{home}/probe-{uuid.uuid4().hex}"
        outcomes = [self._put(probe, text) for text in ("first", "second")]
        content = _client(self.url).get(probe).bytes().to_bytes()
        _client(self.url).delete(probe)
        if outcomes != [True, False] or content != b"first":
            raise JournalError(
                f"journal {self.url} cannot create an object only if there is none (conditional"
                " PUT): use a store that can, or a folder that the driver and all executors share"
            )

    def _put(self, path: str, text: str) -> bool:
        """Create an object unless there is one; returns whether it was created."""
        try:
            # In one part: the condition is that of a single PUT.
            _client(self.url).put(path, text.encode("utf-8"), mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
        return True

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (JournalError, ForeignJournalError):
            raise
        except _ERRORS as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> JournalError:
        cause = str(error).splitlines()[0].rstrip(". ") if str(error) else type(error).__name__
        return JournalError(
            f"journal {self.url} cannot be used: {cause}. Check the bucket, its endpoint, and the"
            " credentials and rights of the driver and the executors"
        )


def _path(key: RecordKey) -> str:
    return f"{home_of(key.journal)}/{name_of(key)}"


def _last(path: str) -> str:
    return path.rsplit("/", 1)[-1]


@lru_cache(maxsize=8)
def _client(url: str) -> ObjectStore:
    """One client a place and process: a task of the next micro-batch uses its connections again.

    Without options of its own: they would replace those of the environment, such as a proxy or
    plain HTTP.
    """
    return from_url(url, retry_config={"max_retries": _RETRIES, "retry_timeout": _RETRY})


@lru_cache(maxsize=64)
def _known(url: str, home: str) -> bool:
    """Whether the marker of a journal is there; a process asks once."""
    try:
        _client(url).head(f"{home}/{MARKER}")
    except FileNotFoundError:
        return False
    return True
