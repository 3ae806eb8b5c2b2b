"""Files as a source: what is read, as values."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple, Self

from balanced_source.api import (
    IDENTITY,
    STOP,
    Json,
    Measure,
    Position,
    SplitEnumeratorContext,
    SplitId,
    SupportsSwitchFrom,
    SwitchPosition,
    is_other,
)
from balanced_source.connectors.files.cursor import Cursor, Extent, Key, Taken, take
from balanced_source.connectors.files.formats import Format, is_splittable
from balanced_source.connectors.files.places import scheme_of
from balanced_source.connectors.files.settings import (
    KIND,
    FileReaderSettings,
    OnFileLoss,
    Store,
)
from balanced_source.connectors.files.split import (
    SCOPE,
    BlockSplit,
    File,
    block_count,
    blocks,
    file_of,
)
from balanced_source.connectors.pull import (
    Conflict,
    ListSplits,
    Page,
    PagedPullSource,
    PagingSplitEnumerator,
    PullState,
)
from balanced_source.errors import ContractViolationError, InvalidSpecError
from balanced_source.names import counted, shown

PAGE: Final = 4096
"""Blocks of one page at most, but those of a whole file at least."""

MEASURED_PAGE: Final = 512
"""The same where each file is measured: nothing of a page is read before all of it is, and what was
measured is lost with a driver that dies before."""

WHOLE_EVERY: Final = 100
"""Where names grow, one of this many listings has all files, to find those that came too late."""

SPLIT_BYTES: Final = 64 * 1024 * 1024
LATE: Final = 3600.0
"""Seconds."""

SHOWN: Final = 3
"""Paths that a message quotes."""

_MEASURED: Final = "measured"
"""Member of the cursor; only where something is measured."""

_SCHEMA: Final = "schema"
"""Member of the cursor; only where columns were inferred."""

_PATHS: Final = "paths"
"""Member of the cursor; older versions did not write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFiles(ListSplits):
    """List the files of some patterns, and return the blocks of new ones.

    Attributes:
        scope: the patterns, for messages.
        round: see `ListSplits`.
        paths: the patterns.
        store: where they are.
        kind: format of the files.
        split_bytes: size of a block.
        late: see `cursor.take`.
        ends: see `cursor.take`.
        on_loss: what files that changed or came too late mean.
        cursor: of the former listing, as JSON.
        names_grow: whether the names of new files are greater than those of older ones.
        measure: what is measured of new files, for the part of a hybrid source that follows; None:
            nothing.
        schema: columns that were inferred from files, as DDL. The first listing stores them, and
            later ones with others are refused; empty: they are not the enumerator's business.
        queue: URL of a queue with notifications of new objects; empty: there is none.
    """

    scope: str
    round: int
    paths: tuple[str, ...]
    store: Store
    kind: Format
    split_bytes: int
    late: float
    ends: bool
    on_loss: OnFileLoss
    cursor: Any
    names_grow: bool = False
    measure: Measure | None = None
    schema: str = ""
    queue: str = ""

    @property
    def floor(self) -> str:
        """Path above which all files are that must be listed; empty if it must be all files."""
        cursor = Cursor.from_json(self.cursor)
        may_be_partial = self.names_grow and not self.former_paths
        return cursor.floor if may_be_partial and cursor.partial < WHOLE_EVERY - 1 else ""

    @property
    def former_paths(self) -> tuple[str, ...]:
        """Patterns of the former listing, if they are others; all files must be listed then."""
        found = self.cursor.get(_PATHS) if isinstance(self.cursor, Mapping) else None
        known = tuple(map(str, found)) if isinstance(found, list) else ()
        return () if known == self.paths else known


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSource(PagedPullSource[BlockSplit], SupportsSwitchFrom):
    """Files below some paths. A value: equal settings, equal sources.

    Attributes:
        paths: patterns, see `pattern`.
        kind_of_file: format.
        store: where they lie.
        split_bytes: size of a block.
        discovery_interval: see `PagedPullSource`.
        late: seconds for which a file may come later than newer ones.
        on_loss: see `OnFileLoss`.
        ahead: blocks that each reader has at hand.
        names_grow: see `ListFiles`.
        failure_threshold: see `SplitListing`.
        may_repeat: see `SplitListing`.
        measure: see `ListFiles`.
        schema: see `ListFiles`.
        queue: see `ListFiles`.
        lists_again: whether a source with an end that is restored lists again, and reads what is
            new since: each start of a query is a life of its own.
    """

    paths: tuple[str, ...]
    kind_of_file: Format
    store: Store = field(default_factory=Store)
    split_bytes: int = SPLIT_BYTES
    discovery_interval: float | None = None
    late: float = LATE
    on_loss: OnFileLoss = OnFileLoss.FAIL
    ahead: int = 2
    names_grow: bool = False
    failure_threshold: int = 1
    may_repeat: bool = False
    measure: Measure | None = None
    schema: str = ""
    queue: str = ""
    lists_again: bool = False

    @property
    def kind(self) -> str:
        return KIND

    @property
    def has_event_times(self) -> bool:
        return False  # only the records know them

    @property
    def look_ahead(self) -> int:
        return self.ahead

    def list_page(self, round_number: int, cursor: Any) -> ListFiles:
        return ListFiles(
            scope=", ".join(self.paths),
            round=round_number,
            paths=self.paths,
            store=self.store,
            kind=self.kind_of_file,
            split_bytes=self.split_bytes,
            late=self.late,
            ends=self.discovery_interval is None,
            on_loss=self.on_loss,
            cursor=cursor,
            names_grow=self.names_grow,
            measure=self.measure,
            schema=self.schema,
            queue=self.queue,
        )

    def restore_enumerator(
        self, context: SplitEnumeratorContext[BlockSplit], state: PullState[BlockSplit]
    ) -> PagingSplitEnumerator[BlockSplit]:
        if self.lists_again and state.cursor is not None:
            # The end that the former query had does not count for this one.
            state = replace(state, is_listed=False, cursor={**state.cursor, "until": None})
        return PagingSplitEnumerator(context, self, state)

    def priority(self, split: BlockSplit) -> int:
        """The largest blocks go first, so that no reader begins one when the others are done."""
        return split.stop - split.begin

    def create_split(
        self, split_id: SplitId, position: Position, attributes: Mapping[str, Any]
    ) -> BlockSplit:
        scope, path, begin = split_id
        if scope != SCOPE or not isinstance(begin, int):
            raise ContractViolationError(f"{split_id!r} is not a block of a file")
        file = file_of(str(path), str(attributes[IDENTITY]))
        offset = begin if position is None else position
        return BlockSplit(file=file, begin=begin, offset=offset, stop=int(attributes[STOP]))

    def conflict(
        self, listed: Mapping[SplitId, BlockSplit], held: Mapping[SplitId, Mapping[str, Json]]
    ) -> Conflict | None:
        changed = {
            str(s[1]) for s, known in held.items() if is_other(listed[s].attributes(), known)
        }
        if not changed:
            return self._other_blocks(listed, held)
        # All blocks of the file: the new ones would be read beside those of the former state.
        blocks_of = frozenset(s for s in listed if s[1] in changed)
        if self.on_loss is OnFileLoss.FAIL:
            return Conflict(split_ids=blocks_of, refusal=_changed(sorted(changed)))
        return Conflict(split_ids=blocks_of, loss=_changes_left_out(len(changed)))

    def replaced(
        self, pending: Mapping[SplitId, BlockSplit], again: Mapping[SplitId, Mapping[str, Json]]
    ) -> frozenset[SplitId]:
        paths = {
            str(s[1]) for s, known in again.items() if is_other(pending[s].attributes(), known)
        }
        blocks_of: dict[str, list[BlockSplit]] = {path: [] for path in paths}
        for split in pending.values() if paths else ():
            if split.file.path in paths:
                blocks_of[split.file.path].append(split)
        # A file of which a part was read, or is with a reader, is a conflict: it stays what it was.
        return frozenset(
            split.split_id
            for blocks in blocks_of.values()
            if sum(split.stop - split.offset for split in blocks) == blocks[0].file.size
            for split in blocks
        )

    def _other_blocks(
        self, listed: Mapping[SplitId, BlockSplit], held: Mapping[SplitId, Mapping[str, Json]]
    ) -> Conflict | None:
        """Return the conflict of files that are cut into other blocks than before.

        Bytes would be read twice, or not at all.
        """
        cut = sorted(
            {
                str(s[1])
                for s, known in held.items()
                if known.get(STOP, listed[s].stop) != listed[s].stop
            }
        )
        if self.may_repeat or not cut:
            return None
        return Conflict(split_ids=frozenset(s for s in listed if s[1] in cut), refusal=_cut(cut))

    def reader_settings(self) -> Mapping[str, Any]:
        settings = FileReaderSettings(
            store=self.store,
            scheme=scheme_of(self.paths[0]),
            on_loss=self.on_loss,
            schema=self.schema,
        )
        return {KIND: settings.to_json()}

    def repeat_advice(self) -> str:
        return "set allowRepeat: true"

    def measuring(self, measure: Measure, *, field: str) -> Self:
        if self.kind_of_file is not Format.PARQUET:
            raise InvalidSpecError(
                f"files of format {self.kind_of_file.value} do not say what is in their columns"
                " without being read: write Parquet files, or give the start of the next part"
                " yourself",
                field=field,
            )
        return replace(self, measure=measure)

    def switch_position(self, state: Any) -> SwitchPosition:
        """Return what the listings have measured: it is kept beside the cursor, page by page."""
        return position_of(state.cursor)


def position_of(cursor: Any) -> SwitchPosition:
    """Return what was measured of the files before a cursor."""
    return SwitchPosition.from_json(None if cursor is None else cursor.get(_MEASURED))


def schema_of(cursor: Any) -> str:
    """Return the columns that were inferred when the source began; empty if none were."""
    return "" if cursor is None else str(cursor.get(_SCHEMA, ""))


def with_position(page: Page[BlockSplit], position: SwitchPosition) -> Page[BlockSplit]:
    """Return a page whose cursor says what was measured of all files up to it."""
    return replace(page, cursor={**page.cursor, _MEASURED: position.to_json()})


class Listed(NamedTuple):
    """What a listing means.

    Attributes:
        page: the answer to the call.
        rest: see `Taken.rest`.
    """

    page: Page[BlockSplit]
    rest: tuple[File, ...] = ()


class _Unread:
    """Files of new paths that are as old as files that were read.

    Args:
        before: of the former listing.
    """

    def __init__(self, before: Cursor) -> None:
        self._horizon = before.horizon
        self.count = 0
        self.example = ""

    def noted(self, listed: Iterable[File], was_selected: Callable[[str], bool]) -> Iterator[File]:
        """Yield all files, and take note of these; see `page_of`."""
        for file in listed:
            if Key(file.modified, file.path) <= self._horizon and not was_selected(file.path):
                self.count, self.example = self.count + 1, self.example or file.path
            yield file


def page_of(
    call: ListFiles,
    listed: Iterable[File],
    extent: Extent = Extent.WHOLE,
    *,
    was_selected: Callable[[str], bool] | None = None,
) -> Listed:
    """Return what a listing means.

    Args:
        call: asked for it.
        listed: files that the patterns select, in any order, each once.
        extent: which of them.
        was_selected: whether the former patterns select a path; None: the patterns are the same.
    """
    if why := _other_schema(call):
        return Listed(Page(cursor=call.cursor, refusal=why))
    before = Cursor.from_json(call.cursor)
    unread = _Unread(before)
    found = take(
        before,
        listed if was_selected is None else unread.noted(listed, was_selected),
        limit=PAGE if call.measure is None else min(PAGE, MEASURED_PAGE),
        late=call.late,
        ends=call.ends,
        extent=extent,
        splits_of=partial(_block_count, call),
    )
    if call.on_loss is OnFileLoss.FAIL and (why := _older(unread) or _refusal(found)):
        # The former cursor stays, so nothing is lost when someone has decided.
        return Listed(Page(cursor=call.cursor, refusal=why))
    new = [block for file in found.files for block in _blocks(call, file)]
    # The counters cannot tell files of other paths apart: these are counted one by one.
    after = replace(found.cursor, late=found.cursor.late + max(0, unread.count - found.late))
    cursor, losses = after.to_json(), _losses(after)
    cursor[_PATHS] = list(call.paths)
    if call.schema:
        cursor[_SCHEMA] = call.schema
    return Listed(
        Page(splits=tuple(new), cursor=cursor, has_more=found.has_more, losses=losses), found.rest
    )


def _block_count(call: ListFiles, file: File) -> int:
    is_cut = is_splittable(file.path, call.kind)
    return block_count(file, split_bytes=call.split_bytes, is_splittable=is_cut)


def _blocks(call: ListFiles, file: File) -> tuple[BlockSplit, ...]:
    is_cut = is_splittable(file.path, call.kind)
    return blocks(file, split_bytes=call.split_bytes, is_splittable=is_cut)


def _other_schema(call: ListFiles) -> str:
    """Return why the columns of a query are not those of the source; empty if they are."""
    stored = schema_of(call.cursor)
    if not (call.schema and stored) or call.schema == stored:
        return ""
    return (
        f"the columns {shown(call.schema)} are not those that were inferred when the source was"
        f" first read: {shown(stored)}. Start the query again, or set the option schema"
    )


def _refusal(found: Taken) -> str:
    """Return why reading must not continue; empty if it may."""
    if found.changed:
        return _changed(found.changed)
    if found.late:
        return (
            f"at least {counted(found.late, 'file')} came later than the window for late files"
            " allows, or went away and came back in part, and cannot be told from files that were"
            " read. Write late ones under new names, raise lateWindow before the next time, or set"
            " onLoss: Skip to continue without them"
        )
    return ""


def _older(unread: _Unread) -> str:
    """Return why reading must not continue with other paths; empty if it may."""
    if not unread.count:
        return ""
    return (
        f"the paths were changed, and {counted(unread.count, 'file')} of the new ones, such as"
        f" {unread.example}, would be left out: files that were read are newer. Read the older ones"
        " by a query of their own, with another state and Spark checkpoint, or set onLoss: Skip to"
        " continue without them"
    )


def _changed(paths: Sequence[str]) -> str:
    return (
        f"{counted(len(paths), 'file')} changed after being listed, such as"
        f" {', '.join(paths[:SHOWN])}. Write changes under new names, or set onLoss: Skip to"
        " continue with what was read before the change"
    )


def _cut(paths: Sequence[str]) -> str:
    return (
        f"{counted(len(paths), 'file')} had blocks of another size before, such as"
        f" {', '.join(paths[:SHOWN])}. Set splitBytes and the format as they were when the query"
        " first read there"
    )


def _changes_left_out(count: int) -> str:
    return f"{counted(count, 'file')} changed after being listed; the changes are not read"


def _losses(cursor: Cursor) -> tuple[str, ...]:
    changed = _changes_left_out(cursor.changed)
    late = (
        f"at least {counted(cursor.late, 'file')} came later than the window for late files allows,"
        " or went away and came back in part: not read"
    )
    return tuple(text for count, text in ((cursor.changed, changed), (cursor.late, late)) if count)
