"""The assignment as ConfigMaps: one for each host of a source, all with the same content."""

import contextlib
from collections.abc import Iterable

from balanced_source.documents import increments
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.parts import Content
from balanced_source.errors import CorruptDocumentError, StateError
from balanced_source_operator.kube.port import KubernetesApi
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.runtime.documents import DocumentWriter


class Publisher:
    """Of one source.

    Drivers see the documents in turn, in any order, so a turn may be cut off between.
    """

    def __init__(self, api: KubernetesApi, source: Identity) -> None:
        self._api = api
        self._source = source
        self._writers: dict[str, DocumentWriter] = {}
        self._base: increments.Base | None = None
        self._is_former = False

    @property
    def documents(self) -> list[DocumentWriter]:
        """The documents of all hosts."""
        return list(self._writers.values())

    async def read(self, hosts: Iterable[str]) -> Assignment | None:
        """Look at what is stored for these hosts; return the newest assignment that can be read.

        One of the source before it was restored from a backup counts, too.

        Raises:
            KubernetesError: the API server does not answer.
        """
        self._base, self._writers, self._is_former = None, {}, False
        found = [await self._read(self._writer(host)) for host in hosts]
        # A turn may have been cut off between two documents: the newest one tells what was decided.
        known = [assignment for assignment in found if assignment is not None]
        return max(known, key=lambda a: (a.lineage, a.epoch), default=None)

    async def _read(self, writer: DocumentWriter) -> Assignment | None:
        # The assignment follows from the state, so one that cannot be read is published again.
        with contextlib.suppress(StateError):
            await writer.read()
            return None if writer.content is None else self._decoded(writer.content)
        return None

    def _decoded(self, content: Content) -> Assignment:
        """Decode a document of this source, or of what it was before it was restored.

        Raises:
            CorruptDocumentError: it is neither.
        """
        if former := self._source.former:
            with contextlib.suppress(CorruptDocumentError):
                decoded = increments.decode(content, source=former)
                self._is_former = True
                return decoded
        if content.base is not None and self._base is None:
            self._base = increments.Base.read(content.base, source=self._source.uid)
        return increments.decode(content, source=self._source.uid)

    @property
    def is_the_same(self) -> bool:
        """Whether all hosts have the same document, under the present uid of the source."""
        contents = [writer.content for writer in self._writers.values()]
        return not self._is_former and all(content == contents[0] for content in contents)

    async def publish(self, document: Assignment, hosts: Iterable[str]) -> bool:
        """Write the documents that differ.

        Returns whether there was any; hosts that are gone keep theirs.

        Raises:
            KubernetesError: the API server does not answer, or refused.
        """
        names = tuple(hosts)
        self._writers = {host: self._writer(host) for host in names}
        text, base = increments.encode(document, source=self._source.uid, base=self._base)
        content = Content(text, base.text if base is not None else None)
        outdated = [writer for writer in self._writers.values() if writer.content != content]
        for writer in outdated:
            await writer.put(content)
        self._base = base
        return bool(outdated)

    def _writer(self, host: str) -> DocumentWriter:
        if host not in self._writers:
            source = self._source.on_host(host)
            self._writers[host] = DocumentWriter(self._api, source, source.documents.assignment)
        return self._writers[host]
