"""Files as a connector; see `Connector`.

Only the driver lists files: the operator lends no one its disks or roles.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from balanced_source.api import (
    AsyncCall,
    CallCodec,
    Caller,
    CallExecutor,
    Connector,
    DriverOnly,
    Identity,
    Json,
    Measure,
    SecretReader,
    Source,
)
from balanced_source.api.enumerator import split_to_json
from balanced_source.connectors.files import (
    KIND,
    BlockSplit,
    Extent,
    File,
    FilesSource,
    Format,
    Listed,
    ListFiles,
    OnFileLoss,
    Store,
    base_of,
    compiled,
    is_visible,
    page_of,
    position_of,
    with_position,
)
from balanced_source.connectors.pull import Page
from balanced_source.errors import (
    ContractViolationError,
    DiscoveryError,
    RefusedDiscoveryError,
    TransientDiscoveryError,
    text_of,
)
from balanced_source.names import is_unicode
from balanced_source_adapters.files.file_store import FileStore, WantedFiles
from balanced_source_adapters.files.news import News
from balanced_source_adapters.files.stores import inner, selection, store_of
from balanced_source_adapters.lazy_log import get_logger

_SINK_LOG: Final = "_spark_metadata"
"""Folder in which Spark's file sink says which files count."""

log = get_logger(__name__)


class FilesConnector(Connector):
    """Files on local disks and mounted volumes, in object stores and in HDFS."""

    kind: Final = KIND
    operator: Final = "balanced_source_operator.files.half:FilesOperatorHalf"
    spark: Final = "balanced_source_spark.files.half:FilesSparkHalf"

    def executor(self, secrets: SecretReader, *, caller: Caller, client_id: str) -> CallExecutor:
        if caller is Caller.OPERATOR:
            return _refuse
        return Lister(secrets)

    def identity_of(self, call: AsyncCall) -> Identity:
        return DriverOnly()

    @property
    def codec(self) -> CallCodec:
        return FilesCodec()

    def secrets(self, source: Source[Any, Any]) -> tuple[str, ...]:
        return (
            (source.store.secret,)
            if isinstance(source, FilesSource) and source.store.secret
            else ()
        )


def _refuse(call: AsyncCall) -> Any:
    raise ContractViolationError(f"only the driver lists files: {type(call).__name__}")


class Lister:
    """Executes listings.

    What a long one has shown beyond a page is kept in memory for the next pages.

    Args:
        secrets: resolves the Secret of the store.
        news: reads notifications; for tests.
    """

    def __init__(self, secrets: SecretReader, news: News | None = None) -> None:
        self._secrets = secrets
        self._rest: tuple[Json, tuple[File, ...]] = (None, ())
        self._news = news or News(secrets)
        self._has_looked = False

    def __call__(self, call: AsyncCall) -> Page[BlockSplit]:
        if not isinstance(call, ListFiles):
            raise ContractViolationError(
                f"the files connector cannot execute a {type(call).__name__}"
            )
        found = self._found(call)
        # What cannot be measured may be replaced, so it is not kept: the next call lists again.
        self._rest = (None, ())
        page = self._measured(call, found.page)
        if not page.refusal:
            self._rest = (page.cursor, found.rest)
        self._news.note(page)
        return page

    def _found(self, call: ListFiles) -> Listed:
        cursor, rest = self._rest
        if rest and cursor == call.cursor and not call.former_paths:
            # Listed once, and not once a page; a driver that has restarted lists again.
            return page_of(call, rest, Extent.REST)
        store = store_of(call.store, call.paths, self._secrets)
        if call.former_paths:
            was_selected = selection(call.former_paths)
            return page_of(call, listed(call, store), was_selected=was_selected)
        if (named := self._news.named(call, store)) is not None:
            return page_of(call, named, Extent.NAMED)
        self._look_for_sinks(call, store)
        floor = call.floor
        is_partial = bool(floor) and store.is_ordered
        files = listed(call, store, after=floor if is_partial else "")
        return page_of(call, files, Extent.ABOVE_FLOOR if is_partial else Extent.WHOLE)

    def _look_for_sinks(self, call: ListFiles, store: FileStore) -> None:
        """Say once that a folder is written by a file sink of Spark, with files of failed tasks."""
        if self._has_looked:
            return
        self._has_looked = True
        for base in sorted({base_of(path).rstrip("/") for path in _inner_paths(call)}):
            try:
                is_sink = store.exists(f"{base}/{_SINK_LOG}")
            except (OSError, DiscoveryError):
                continue  # the listing says what is wrong
            if is_sink:
                log.warning(
                    "a query of Spark writes to this folder. Files that its failed micro-batches"
                    " have left are read, too: their rows may come twice. Let it write a table of"
                    " Delta or Iceberg, or to Kafka, if that matters",
                    folder=base,
                )

    def _measured(self, call: ListFiles, page: Page[BlockSplit]) -> Page[BlockSplit]:
        """Return the page with what the columns of its files say, if that is asked for."""
        if call.measure is None or page.refusal:
            return page
        from balanced_source_adapters.files.measuring import MeasureError, measured

        files = {split.file.path: split.file for split in page.splits}
        store = store_of(call.store, call.paths, self._secrets)
        try:
            position = measured(
                store, files.values(), call.measure, position_of(call.cursor), scope=call.scope
            )
        except MeasureError as error:
            return Page(cursor=call.cursor, refusal=str(error))
        return with_position(page, position)


def _inner_paths(call: ListFiles) -> list[str]:
    """Return the patterns of a call in the store's own form.

    Raises:
        DiscoveryError: one is invalid.
    """
    try:
        patterns = [inner(path) for path in call.paths]
        for pattern in patterns:
            compiled(pattern)
    except ValueError as error:
        raise RefusedDiscoveryError(f"invalid path: {error}", scope=call.scope) from error
    return patterns


def listed(call: ListFiles, store: FileStore, *, after: str = "") -> Iterator[File]:
    """Return the files that a call selects, each once, with paths after a given one.

    Raises:
        DiscoveryError: the store does not answer, or refuses to; or a pattern is invalid.
    """
    patterns = _inner_paths(call)
    expressions = [compiled(pattern) for pattern in patterns]
    several, known = len(patterns) > 1, set[str]()
    for pattern, expression in zip(patterns, expressions, strict=True):
        base, is_there = base_of(pattern), False
        for file in store.walk(base, after=after, wanted=WantedFiles.by(pattern)):
            is_there = True
            if not (expression.matches(file.path) and is_visible(file.path, pattern)):
                continue
            if several:  # patterns may overlap
                if file.path in known:
                    continue
                known.add(file.path)
            # Offsets and rows name files as text.
            if not is_unicode(file.path):
                why = f"the name of the file {file.path!r} is not UTF-8: rename or delete it"
                raise RefusedDiscoveryError(why, scope=call.scope)
            yield file
        # Objects come and go, and their folder with them: one was there when reading began.
        may_be_gone = not store.has_folders and call.cursor is not None
        if not (is_there or after or may_be_gone or _exists(store, base, scope=call.scope)):
            why = f"{base} does not exist: check the path {pattern}, or create it"
            raise RefusedDiscoveryError(why, scope=call.scope)


def _exists(store: FileStore, base: str, *, scope: str) -> bool:
    try:
        return store.exists(base)
    except OSError as error:
        why = text_of(error).rstrip(".")
        raise TransientDiscoveryError(f"cannot look at {base}: {why}", scope=scope) from error


class FilesCodec(CallCodec):
    """Writes listings for a driver."""

    def call_to_json(self, call: AsyncCall) -> Json:
        if not isinstance(call, ListFiles):
            raise ContractViolationError(f"a {type(call).__name__} is not a listing of files")
        measure = {} if call.measure is None else {"measure": call.measure.to_json()}
        # Drivers of former releases do not know these: they are left out where unset.
        rare = {"schema": call.schema, "queue": call.queue}
        known = {n: value for n, value in asdict(call).items() if n != "measure" and n not in rare}
        set_ones = {name: text for name, text in rare.items() if text}
        return {**known, "store": call.store.to_json(), **measure, **set_ones}

    def call_from_json(self, data: Json) -> ListFiles:
        known = {**data, "paths": tuple(data["paths"]), "store": Store.from_json(data["store"])}
        if "measure" in data:
            known["measure"] = Measure.from_json(data["measure"])
        return ListFiles(
            **{**known, "kind": Format(data["kind"]), "on_loss": OnFileLoss(data["on_loss"])}
        )

    def result_to_json(self, call: AsyncCall, result: Any) -> Json:
        page: Page[BlockSplit] = result
        return {
            "splits": [split_to_json(split) for split in page.splits],
            "cursor": page.cursor,
            "hasMore": page.has_more,
            "losses": list(page.losses),
            "refusal": page.refusal,
        }

    def result_from_json(self, call: AsyncCall, data: Json) -> Page[BlockSplit]:
        if not isinstance(call, ListFiles):
            raise ContractViolationError(f"a {type(call).__name__} is not a listing of files")
        source = FilesSource(paths=call.paths, kind_of_file=call.kind)
        return Page(
            splits=tuple(
                source.create_split(tuple(s), int(position), dict(a))
                for s, position, a in data["splits"]
            ),
            cursor=data["cursor"],
            has_more=bool(data["hasMore"]),
            losses=tuple(map(str, data["losses"])),
            refusal=str(data["refusal"]),
        )
