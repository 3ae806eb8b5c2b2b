"""The operator's documents in ConfigMaps.

Compare-and-swap for the state, repair for the assignment.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from balanced_source.documents import envelope
from balanced_source.documents.parts import Content, assemble, lay_out, parts_of, with_parts
from balanced_source.documents.storage import Blob
from balanced_source.errors import IncompatibleVersionError, StateConflictError, StateError
from balanced_source_operator.kube.port import ConflictError, KubernetesApi, Manifest
from balanced_source_operator.resources.documents import blob_of, config_map_of
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import CONFIG_MAP
from balanced_source_operator.runtime.ownership import binding, checked
from balanced_source_operator.runtime.parts import PartWriter, read_parts

_REMEMBERED: Final = 16
"""Writes without an answer that are remembered: each of them may be what is stored."""

Lookup = Callable[[str], Manifest | None]
"""What was last seen of a ConfigMap."""


async def read_content(api: KubernetesApi, namespace: str, found: Manifest) -> Content:
    """What a ConfigMap and its parts hold.

    Raises:
        CorruptDocumentError: no document, or not all of it.
    """
    head, name = blob_of(found), str(found["metadata"]["name"])
    return assemble(head, await read_parts(api, namespace, name, parts_of(head)))


class DocumentWriter:
    """One document with one writer: this operator.

    Attributes:
        name: of the ConfigMap.
        content: what is stored, as far as we know; None if nothing is.
    """

    def __init__(self, api: KubernetesApi, source: Identity, name: str) -> None:
        self._api = api
        self._source = source
        self.name = name
        self.content: Content | None = None
        self._head = Blob()
        self._revision: str | None = None
        self._uid: str | None = None
        self._unanswered: deque[str] = deque(maxlen=_REMEMBERED)
        self._parts = PartWriter(api, source, name)

    @property
    def text(self) -> str | None:
        """The document of `content`."""
        return self.content.document if self.content is not None else None

    async def read(self) -> str | None:
        """Look at what is stored; None if nothing is. `content` has it whole.

        Raises:
            CorruptDocumentError: something is, but no document.
        """
        # First: after an error below, nothing that was known before may be taken for stored.
        self.content = None
        self._unanswered.clear()
        self._parts.forget()
        found = await self._found()
        self._revision = found["metadata"]["resourceVersion"] if found is not None else None
        if found is None:
            return None
        self._uid = found["metadata"]["uid"]
        self._head = blob_of(found)
        self.content = await read_content(self._api, self._source.namespace, found)
        self._parts.adopt(parts_of(self._head))
        return self.content.document

    async def is_readable(self, decode: Callable[[str], object]) -> bool:
        """Look at what is stored now: whether an operator has written it, perhaps a newer one."""
        try:
            if (stored := await self.read()) is None:
                return False
            decode(stored)
        except StateError as error:
            return isinstance(error, IncompatibleVersionError)
        return True

    async def swap(self, document: str) -> None:
        """Store, if no one else has stored since.

        Raises:
            StateConflictError: someone has.
            StateError: it is too large.
        """
        try:
            await self._write(Content(document))
        except ConflictError as error:
            if not self._is_taken_over(await self._found()):
                raise self.conflict() from error
            await self.swap(document)

    def conflict(self) -> StateConflictError:
        """Return the error for a document that someone else has written."""
        return StateConflictError(f"ConfigMap {self.name} was written by another process")

    async def put(self, content: Content) -> None:
        """Store, whatever is there."""
        try:
            await self._write(content)
        except ConflictError:
            # The assignment has one writer and follows from the stored state, so what is ours wins.
            found = await self._found()
            if not self._is_taken_over(found):
                self._revision = found["metadata"]["resourceVersion"] if found is not None else None
            await self._write(content)

    def is_foreign(self, seen: Lookup) -> bool:
        """Whether what watches delivered is not what we wrote.

        It may only be late: ask `is_still_foreign`.
        """
        if self.content is None:
            return False
        head = seen(self.name)
        return head is None or self._differs(head) or self._parts.is_foreign(seen)

    async def is_still_foreign(self) -> bool:
        """Whether someone else changed or deleted the document: looks at what is stored now."""
        found = await self._found()
        return found is None or self._differs(found) or await self._parts.is_still_foreign()

    def _differs(self, manifest: Manifest) -> bool:
        if manifest["metadata"]["resourceVersion"] == self._revision:
            return False
        # Another revision may hold the same document: someone has changed the metadata only.
        head = blob_of(manifest)
        return head != self._head and _digest(head) not in self._unanswered

    def is_unmarked(self, seen: Lookup) -> bool:
        """Whether owner reference or labels are missing, as far as watches have delivered.

        Ask `mark`.
        """
        head = seen(self.name)
        return self.content is not None and (head is None or not self._source.is_marked(head))

    async def mark(self) -> bool:
        """Restore owner reference and labels, and nothing else.

        Returns whether the owner reference was missing.
        """
        found = await self._found()
        if found is None or self._source.is_marked(found) or blob_of(found) != self._head:
            return False
        stored = await self._api.apply(CONFIG_MAP, binding(self._source, CONFIG_MAP, self.name))
        # Else the next swap would lose against this change of our own.
        self._revision = stored["metadata"]["resourceVersion"]
        return not self._source.is_bound(found)

    async def _found(self) -> Manifest | None:
        """The ConfigMap.

        One that is not ours is an error, never silently ignored or overwritten.
        """
        found = await self._api.get(CONFIG_MAP, self._source.namespace, self.name)
        if found is None or found["metadata"]["uid"] == self._uid:
            # the object that was written before, whatever someone has done to its metadata
            return found
        return checked(self._source, CONFIG_MAP, found)

    async def _write(self, content: Content) -> None:
        """Parts first, then the head that names them, then the parts that no one needs any more."""
        head, parts = lay_out(content)
        if parts:
            await self._check_revision()
        head = with_parts(head, await self._parts.write(parts))
        manifest = config_map_of(self._source, self.name, head)
        self._unanswered.append(_digest(head))
        # A create fails if someone was quicker: it is the compare-and-swap of the first write.
        if self._revision is None:
            stored = await self._api.create(CONFIG_MAP, manifest)
        else:
            metadata = {**manifest["metadata"], "resourceVersion": self._revision}
            stored = await self._api.replace(CONFIG_MAP, {**manifest, "metadata": metadata})
        self.content, self._head, self._revision = (
            content,
            head,
            stored["metadata"]["resourceVersion"],
        )
        self._uid = stored["metadata"]["uid"]
        self._unanswered.clear()
        # Last: until the new head is stored, readers of the old one need its parts.
        await self._parts.head_stored()

    def _is_taken_over(self, found: Manifest | None) -> bool:
        """Take over what is stored if it is what a request of ours that got no answer has written.

        No other process has written it, so nothing was decided that we do not know. Returns
        whether it is.
        """
        if found is None or _digest(head := blob_of(found)) not in self._unanswered:
            return False
        self._revision, self._uid = found["metadata"]["resourceVersion"], found["metadata"]["uid"]
        self._head = head
        # The next write must not touch what this head names: it may be cut off, too.
        self._parts.replaced_by(parts_of(head))
        self._unanswered.clear()
        return True

    async def _check_revision(self) -> None:
        """Parts are written without a compare-and-swap of their own.

        See before that we are still the only writer.
        """
        found = await self._found()
        revision = found["metadata"]["resourceVersion"] if found is not None else None
        if revision != self._revision:
            raise ConflictError(f"ConfigMap {self.name} has changed")


def _digest(head: Blob) -> str:
    """Return a digest of a head: a few bytes, where a head may have a million."""
    return envelope.digest({**head.data, **head.binary})
