"""Keeps all objects of a kind in memory: one list and one watch, whatever the number of sources.

The pattern, and its name, are those of Kubernetes' client-go. Every change is also told to code
that is concerned, so a list that finds something else than the watch has delivered is told as well.
"""

import asyncio
import random
import time
from collections.abc import Callable, Container
from contextlib import aclosing
from typing import Any, Final, TypeAlias

import structlog

from balanced_source_operator.kube.port import (
    KubernetesError,
    Manifest,
    RefusedError,
    UnknownKindError,
)
from balanced_source_operator.kube.stream import ExpiredError, SilentWatchError, Stream, WatchEvent
from balanced_source_operator.resources.kinds import NAME_LABEL, POD, ResourceKind

RELIST: Final = 600.0
"""Seconds after which everything is listed again, should a watch ever have lost something."""

LIST_ADDED: Final = 15.0
"""Seconds after which everything is listed again because a namespace was added. Namespaces that are
added one after another share a list."""

HELD: Final = 10.0
"""Seconds that a watch must last before the next fault is treated as the first one."""

RETRY_FIRST: Final = 1.0
RETRY_MAX: Final = 15.0
"""Seconds until the next attempt after a failure, at first and at most."""

UNKNOWN: Final = 20.0
"""Seconds until a kind that was not installed is looked for again."""

Tell: TypeAlias = Callable[[ResourceKind, str, Manifest], None]
_Key: TypeAlias = tuple[str, str]

log = structlog.get_logger(__name__)


class Informer:
    """Of one kind in one namespace, or in all. Used on one event loop.

    Args:
        stream: lists and watches.
        kind: of the objects.
        namespace: an empty one means all.
        selector: labels of the objects that are kept.
        tell: gets kind, event and object of each change. It must not change the object.
        namespaces: those whose objects are kept and told of; None for all. It may change: see `add`
            and `forget`.

    Attributes:
        is_live: whether what is kept is what the API server has, except for the time that a watch
            takes.
        is_unknown: whether the API server does not know this kind.
    """

    def __init__(
        self,
        stream: Stream,
        kind: ResourceKind,
        namespace: str,
        *,
        selector: str,
        tell: Tell,
        namespaces: Container[str] | None = None,
    ) -> None:
        self._stream = stream
        self._namespaces = namespaces
        self._added: set[str] = set()
        self._due = 0.0
        self._revision = ""
        self._opened_at: float | None = None
        self._tell = tell
        self._selector = selector
        self.kind = kind
        self.namespace = namespace
        self.is_live = False
        self.is_unknown = False
        self._objects: dict[_Key, Manifest] = {}
        self._of: dict[_Key, dict[str, Manifest]] = {}
        self._first = asyncio.Event()

    def get(self, namespace: str, name: str) -> Manifest | None:
        """Return an object; None if it is not known."""
        return self._objects.get((namespace, name))

    def of_source(self, namespace: str, source: str) -> list[Manifest]:
        """Return the objects that carry the name of a source as label."""
        return list(self._of.get((namespace, source), {}).values())

    def covers(self, namespace: str) -> bool:
        """Return whether all objects of a namespace are known, not only those that have changed."""
        return self.is_live and namespace not in self._added

    def add(self, namespace: str) -> None:
        """Note that objects of this namespace are kept from now on.

        Those that were there before are known after the next list, which comes soon.
        """
        self._added.add(namespace)
        self._due = min(self._due, time.monotonic() + LIST_ADDED)

    def forget(self, namespace: str) -> None:
        """Drop the objects of a namespace, which are not kept any more, without telling of it."""
        self._added.discard(namespace)
        for key in [key for key in self._objects if key[0] == namespace]:
            self._unindex(key, self._objects.pop(key))

    async def first(self) -> None:
        """Wait until the first attempt to list has ended, whatever came of it."""
        await self._first.wait()

    async def run(self) -> None:
        """Follow the kind until this is cancelled. No failure ends it."""
        pause = RETRY_FIRST
        while True:
            self._opened_at = None
            error = await self._attempt()
            has_held = self._has_held()
            # Not after a list: while lists succeed and only watches fail, the back-off must grow.
            pause = RETRY_FIRST if has_held else pause
            if error is not None:
                self._failed(error)
            elif has_held or self._is_list_due():
                continue
            else:
                # Without a revision, changes are missed until the next list.
                self.is_live = self.is_live and bool(self._revision)
                log.warning("watch ended at once; trying again", kind=self.kind.plural)
            jittered = pause * random.uniform(0.5, 1.0)  # noqa: S311 - jitter
            await asyncio.sleep(UNKNOWN if self.is_unknown else jittered)
            pause = min(2 * pause, RETRY_MAX)

    async def _attempt(self) -> Exception | None:
        """List if that is due, then watch. Return what went wrong."""
        try:
            if not self._revision or self._is_list_due():
                await self._list()
            self._opened_at = time.monotonic()
            await self._follow()
        except ExpiredError:
            # 410: what has changed since is not known any more, and only a list tells.
            self._revision = ""
        except SilentWatchError:
            # If the API server is away, opening the watch again fails, and that is told.
            log.debug("watch opened again", kind=self.kind.plural)
        except Exception as error:  # noqa: BLE001 - whatever it is, the sources depend on this
            return error
        return None

    def _has_held(self) -> bool:
        """Whether the last watch has lasted. The list before it may have taken long by itself."""
        return self._opened_at is not None and time.monotonic() - self._opened_at >= HELD

    def _is_list_due(self) -> bool:
        return time.monotonic() >= self._due

    def _failed(self, error: Exception) -> None:
        """Note a failure, and whether the watch may continue behind what it has told.

        Objects of a kind that is unknown stay: an API server that has just started may not know it
        for a moment.
        """
        self.is_live = False
        was_unknown, self.is_unknown = self.is_unknown, isinstance(error, UnknownKindError)
        # Sources wait for the first attempt only: a kind that is not installed must not hold them
        # up.
        self._first.set()
        if self.is_unknown:  # most clusters have one of the two Spark operators
            if not was_unknown:
                log.info(
                    "this kind is not installed; it is looked for again and again", error=str(error)
                )
        elif isinstance(error, KubernetesError):
            log.warning("watch interrupted; trying again", kind=self.kind.plural, error=str(error))
        else:
            log.error("watch failed; starting over", kind=self.kind.plural, exc_info=error)
        if not _may_go_on(error):
            self._revision = ""

    async def _list(self) -> None:
        """List everything, and tell what differs from what is known.

        Page by page, so that no more than a page is in memory twice.
        """
        added, found = frozenset(self._added), set[_Key]()
        pages = self._stream.pages(self.kind, self.namespace, selector=self._selector)
        async with aclosing(pages):
            async for page in pages:
                for item in page.items:
                    found.add(_key(item))
                    self._compare(item)
                revision = page.revision
        # A deletion that the watch has missed: nothing else would ever tell of it.
        for key in self._objects.keys() - found:
            self._note(WatchEvent("DELETED", self._objects[key]))
        # Of a namespace that was added meanwhile, earlier pages were not taken over.
        self._added -= added
        self.is_live, self.is_unknown = True, False
        self._first.set()
        self._revision = revision
        self._due = time.monotonic() + (LIST_ADDED if self._added else RELIST)

    async def _follow(self) -> None:
        """Take over changes until the watch ends."""
        watch = self._stream.watch(
            self.kind, self.namespace, selector=self._selector, revision=self._revision
        )
        async with aclosing(watch) as changes:
            async for change in changes:
                self.is_live = True
                # A bookmark holds a revision alone, which keeps a quiet watch from being too old.
                if change.event != "BOOKMARK":
                    self._note(change)
                # Also for a watch that breaks: older states must not be told after newer ones.
                self._revision = str(change.manifest["metadata"]["resourceVersion"])
                if self._is_list_due():
                    break
        # The API server ends each watch after a while; that is no failure.
        self.is_live = True

    def _compare(self, item: Manifest) -> None:
        """Tell of an object of a list, unless it is known as it is."""
        known = self._objects.get(_key(item))
        if known is None:
            self._note(WatchEvent("ADDED", item))
        elif known["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
            self._note(WatchEvent("MODIFIED", item))

    def _note(self, change: WatchEvent) -> None:
        namespace = change.manifest["metadata"].get("namespace", "")
        if self._namespaces is not None and namespace not in self._namespaces:
            return
        manifest = slim(self.kind, change.manifest)
        key = _key(manifest)
        if (known := self._objects.pop(key, None)) is not None:
            self._unindex(key, known)
        if change.event != "DELETED":
            self._objects[key] = manifest
            self._of.setdefault((key[0], _source(manifest)), {})[key[1]] = manifest
        self._tell(self.kind, change.event, manifest)

    def _unindex(self, key: _Key, manifest: Manifest) -> None:
        where = (key[0], _source(manifest))
        self._of[where].pop(key[1], None)
        if not self._of[where]:
            del self._of[where]


def slim(kind: ResourceKind, manifest: Manifest) -> Manifest:
    """Return an object without what no one here reads: thousands of them are kept."""
    metadata = {
        name: value for name, value in manifest["metadata"].items() if name != "managedFields"
    }
    kept: dict[str, Any] = {**manifest, "metadata": metadata}
    if kind == POD:
        kept.pop("spec", None)
    return kept


def _may_go_on(error: Exception) -> bool:
    """Whether a watch may continue at its revision.

    The connection broke, and nothing was said against it.
    """
    return isinstance(error, KubernetesError) and not isinstance(
        error, RefusedError | UnknownKindError
    )


def _key(manifest: Manifest) -> _Key:
    return str(manifest["metadata"].get("namespace", "")), str(manifest["metadata"]["name"])


def _source(manifest: Manifest) -> str:
    return str((manifest["metadata"].get("labels") or {}).get(NAME_LABEL, ""))
