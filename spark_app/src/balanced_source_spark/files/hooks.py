"""What planning asks of files; see `PlannerHooks`."""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from balanced_source.api import Problem, SplitId
from balanced_source.connectors.files import (
    SKIPPED_BLOCKS,
    File,
    FileReaderSettings,
    Format,
    OnFileLoss,
    Store,
    compression_of,
    file_of,
)
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import TransientDiscoveryError, text_of
from balanced_source.host import SplitRange
from balanced_source.host.ends import Look, Mark, SplitEnd
from balanced_source.names import counted
from balanced_source.reasons import Reason
from balanced_source_adapters.files.file_store import FileStore
from balanced_source_adapters.files.stores import store_of
from balanced_source_spark.contract.hooks import PlannerContext, PlannerHooks
from balanced_source_spark.files.inferring import other_columns
from balanced_source_spark.files.options import FileReadOptions

_KEY = ("files", "lost")

_FEW: Final = 4
"""So many files are checked in turn: threads would cost more."""

_LOOKS: Final = 32
"""Files that are checked side by side."""

_KEPT: Final = 10_000
"""Skipped blocks that are remembered, so that each counts once."""


class FilesHooks(PlannerHooks):
    """Looks at each block's file once, before it is planned first.

    A file that is not the one that was listed any more is left out, which holds its block back, or
    is counted and left to the task to skip. Tasks look again, and tell what they skip.

    Args:
        context: of the query.
    """

    def __init__(self, context: PlannerContext[FileReadOptions]) -> None:
        self._context = context
        self._good: dict[SplitId, str] = {}
        self._bad: dict[SplitId, str] = {}
        self._skipped = 0
        self._counted: set[SplitId] = set()
        self._store: tuple[Store, str, FileStore] | None = None
        self._is_reported = False

    def ends(
        self, scope: str, split_ids: Collection[SplitId], marks: Mapping[SplitId, Mark]
    ) -> Mapping[SplitId, SplitEnd]:
        self._check_columns()
        known = {s: mark for s, mark in marks.items() if mark.identity is not None}
        found: dict[SplitId, SplitEnd] = {}
        # Once per block: a look is a request to the store.
        self._look(
            {
                s: mark.identity
                for s in split_ids
                if (mark := known.get(s)) is not None
                and mark.identity is not None
                and not mark.is_finished
                and self._good.get(s) != mark.identity
            }
        )
        for split_id in split_ids:
            mark = known.get(split_id)
            identity = self._good.get(split_id)
            if mark is not None and mark.is_finished and mark.identity is not None:
                identity = mark.identity  # a file that was read may be gone
            if identity is not None:
                found[split_id] = SplitEnd(end=file_of("", identity).size, identity=identity)
        # Blocks that were read leave: what is kept must not grow with all files that ever were.
        if len(self._good) > 2 * len(known):
            self._good = {s: identity for s, identity in self._good.items() if s in known}
        self._bad = {s: why for s, why in self._bad.items() if s in known}
        if len(self._counted) > _KEPT:
            self._counted &= known.keys()
        return found

    def asked_for(self, split_ids: Collection[SplitId]) -> Collection[SplitId]:
        return split_ids

    def may_cut(self, split_id: SplitId) -> bool:
        kind = self._context.query.read.kind
        # A compressed file is read from its beginning, and a binary one is a single row.
        return kind is not Format.BINARY and compression_of(str(split_id[1]), kind) is None

    def may_skip(self) -> bool:
        return self._policy() is OnFileLoss.SKIP

    def note_look(self, base: StreamOffset, seen: Look) -> None:
        lost = [s for s in base.positions if s in self._bad]
        if not lost:
            if self._is_reported:
                self._context.set_problem(_KEY, None)
                self._is_reported = False
            return
        path = str(lost[0][1])
        self._context.set_problem(
            _KEY,
            Problem(
                reason=Reason.SPLITS_LOST,
                message=(
                    f"{counted(len(lost), 'block')} of files cannot be read, such as one of"
                    f" {path}: it {self._bad[lost[0]]} after it was listed. Restore the file,"
                    " or set onLoss to Skip to continue without it"
                ),
                is_fatal=True,
            ),
        )
        self._is_reported = True
        self._context.check_problems()

    def note_skipped(self, ranges: Collection[SplitRange]) -> None:
        for piece in ranges:
            self._count(piece.split_id)

    def _count(self, split_id: SplitId) -> None:
        """Count a block that is not read, or not to its end, once."""
        if split_id not in self._counted:
            self._counted.add(split_id)
            self._skipped += 1

    def numbers(self) -> Mapping[str, int]:
        return {SKIPPED_BLOCKS: self._skipped} if self._skipped else {}

    def _check_columns(self) -> None:
        """Check that the query reads the columns that the enumerator state keeps.

        Raises:
            InvalidSpecError: they were inferred at two moments, with a new file in between.
        """
        stored = self._settings().schema
        if stored and stored != self._context.query.read.ddl:
            raise other_columns(stored, self._context.query.read.ddl)

    def _look(self, identities: Mapping[SplitId, str]) -> None:
        """Look whether files are still those that were listed, each once for all of its blocks."""
        files = {s: file_of(str(s[1]), identity) for s, identity in identities.items()}
        now = self._as_they_are(sorted({file.path for file in files.values()}))
        failures: list[OSError] = []
        for split_id, file in files.items():
            match now[file.path]:
                case OSError() as failure:
                    failures.append(failure)
                case found:
                    self._judge(split_id, file, found)
        # Last: what was answered is known, or a few failures would keep thousands waiting.
        if failures:
            raise TransientDiscoveryError(str(failures[0]), scope="files") from failures[0]

    def _as_they_are(self, paths: Sequence[str]) -> Mapping[str, File | OSError | None]:
        """Return files as the store has them now; None for those that are gone.

        Side by side, as far as it pays: a request to an object store takes some ten milliseconds,
        and one micro-batch may begin thousands of files.
        """
        if not paths:
            return {}
        look = partial(_stat, self._opened())
        if len(paths) <= _FEW:
            return {path: look(path) for path in paths}
        with ThreadPoolExecutor(_LOOKS, thread_name_prefix="bsrc-look") as pool:
            return dict(zip(paths, pool.map(look, paths), strict=True))

    def _judge(self, split_id: SplitId, file: File, now: File | None) -> None:
        if now is not None and now.identity == file.identity:
            self._bad.pop(split_id, None)
            self._good[split_id] = file.identity
        elif self.may_skip():
            self._bad.pop(split_id, None)
            self._good[split_id] = file.identity
            # The task skips it, after another look of its own.
            self._count(split_id)
        else:
            self._good.pop(split_id, None)
            self._bad[split_id] = "was deleted" if now is None else "was changed"

    def _opened(self) -> FileStore:
        settings = self._settings()
        place = settings.store, settings.scheme
        if self._store is None or self._store[:2] != place:
            store = store_of(settings.store, (settings.scheme,), self._context.query.secrets)
            self._store = *place, store
        return self._store[2]

    def _settings(self) -> FileReaderSettings:
        if (found := FileReaderSettings.found(self._context.known_settings())) is None:
            raise TransientDiscoveryError(
                "the files cannot be looked at before the first assignment says where they are:"
                " this is tried again",
                scope="files",
            )
        return found

    def _policy(self) -> OnFileLoss:
        settings = FileReaderSettings.found(self._context.known_settings())
        return OnFileLoss.FAIL if settings is None else settings.on_loss


def _stat(store: FileStore, path: str) -> File | OSError | None:
    try:
        return store.stat(path)
    except OSError as error:
        return OSError(
            f"cannot look at {path}: {text_of(error)}. Check the store and its credentials"
        )
