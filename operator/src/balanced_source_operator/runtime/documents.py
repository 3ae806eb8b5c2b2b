"""The operator's documents in ConfigMaps: compare-and-swap for the state, repair for the assignment."""

from balanced_source.documents.storage import unpack
from balanced_source.errors import StateConflictError, StateError
from balanced_source_operator.kube.port import ConflictError, KubernetesApi, Manifest
from balanced_source_operator.resources.documents import blob_of, config_map
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import CONFIG_MAP


class DocumentWriter:
    """One document with one writer: this operator.

    Attributes:
        name: of the ConfigMap.
        text: what is stored, as far as we know; None if nothing is.
    """

    def __init__(self, api: KubernetesApi, source: Identity, name: str) -> None:
        self._api = api
        self._source = source
        self.name = name
        self.text: str | None = None
        self._revision: str | None = None

    async def read(self) -> str | None:
        """Look at what is stored; None if nothing is.

        Raises:
            CorruptDocumentError: something is, but no document.
        """
        self.text = None
        found = await self._found()
        self._revision = found["metadata"]["resourceVersion"] if found is not None else None
        if found is None or not self._is_ours(found):
            return None
        self.text = unpack(blob_of(found))
        return self.text

    async def swap(self, text: str) -> None:
        """Store, if nobody else has stored since.

        Raises:
            StateConflictError: somebody has.
        """
        try:
            await self._write(text)
        except ConflictError as error:
            raise StateConflictError(f"ConfigMap {self.name} was written by somebody else") from error

    async def put(self, text: str) -> None:
        """Store, whatever is there."""
        try:
            await self._write(text)
        except ConflictError:
            found = await self._found()
            self._revision = found["metadata"]["resourceVersion"] if found is not None else None
            await self._write(text)

    def is_foreign(self, seen: Manifest | None) -> bool:
        """Whether what a watch delivered is not what we wrote. It may only be late: ask `is_still_foreign`."""
        if self.text is None:
            return False
        return seen is None or self._differs(seen)

    async def is_still_foreign(self) -> bool:
        """Whether somebody else changed or deleted the document: looks at what is stored now."""
        found = await self._found()
        return found is None or self._differs(found)

    def _differs(self, manifest: Manifest) -> bool:
        if manifest["metadata"]["resourceVersion"] == self._revision:
            return False
        try:
            return unpack(blob_of(manifest)) != self.text
        except StateError:
            return True

    def _is_ours(self, manifest: Manifest) -> bool:
        """A namesake's left-over, about to be collected, is not."""
        return any(owner["uid"] == self._source.uid for owner in manifest["metadata"].get("ownerReferences", []))

    async def _found(self) -> Manifest | None:
        return await self._api.get(CONFIG_MAP, self._source.namespace, self.name)

    async def _write(self, text: str) -> None:
        manifest = config_map(self._source, self.name, text)
        if self._revision is None:
            stored = await self._api.create(CONFIG_MAP, manifest)
        else:
            metadata = {**manifest["metadata"], "resourceVersion": self._revision}
            stored = await self._api.replace(CONFIG_MAP, {**manifest, "metadata": metadata})
        self.text, self._revision = text, stored["metadata"]["resourceVersion"]
