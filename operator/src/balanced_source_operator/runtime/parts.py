"""Parts of a large document, as ConfigMaps. See `balanced_source.documents.parts`."""

from collections.abc import Callable, Sequence

from balanced_source.documents.parts import Part, PartRef, allocate, is_part, part_names
from balanced_source.documents.storage import Blob
from balanced_source_operator.kube.port import KubernetesApi, Manifest
from balanced_source_operator.resources.documents import blob_of, config_map_of
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import CONFIG_MAP
from balanced_source_operator.runtime.ownership import checked


async def read_parts(
    api: KubernetesApi, namespace: str, document: str, refs: Sequence[PartRef]
) -> list[Blob]:
    """The parts that a head names, as they are; an empty one for one that is missing."""
    names = part_names(document)
    found = [await api.get(CONFIG_MAP, namespace, names[ref.number]) for ref in refs]
    return [blob_of(manifest) if manifest is not None else Blob() for manifest in found]


class PartWriter:
    """Parts of one document.

    The operator may not delete ConfigMaps, so a part that is not needed is emptied.
    """

    def __init__(self, api: KubernetesApi, source: Identity, document: str) -> None:
        self._api = api
        self._source = source
        self._names = part_names(document)
        self._named: tuple[PartRef, ...] = ()
        self._written: tuple[PartRef, ...] = ()
        self._next: tuple[PartRef, ...] = ()
        self._outdated: set[int] = set()
        self._looked_at: dict[PartRef, str] = {}

    def adopt(self, refs: Sequence[PartRef]) -> None:
        """The stored head names these."""
        self._named, self._written = tuple(refs), ()

    def replaced_by(self, refs: Sequence[PartRef]) -> None:
        """The stored head names these; the others are emptied after the next head."""
        others = {ref.number for ref in (*self._named, *self._written)}
        self._outdated = (self._outdated | others) - {ref.number for ref in refs}
        self.adopt(refs)

    def forget(self) -> None:
        """Nothing is known about what is stored."""
        self._named, self._written = (), ()

    async def write(self, parts: Sequence[Part]) -> tuple[PartRef, ...]:
        """Store the parts that are not stored yet.

        What the stored head names stays, until `head_stored`.

        Raises:
            StateError: there are too many.
        """
        refs = allocate(parts, self._named, self._written)
        for ref, part in zip(refs, parts, strict=True):
            if ref not in self._named and ref not in self._written:
                # Before the write: if that is cut off, no one knows what this part holds.
                self._written = tuple(
                    other for other in self._written if other.number != ref.number
                )
                await self._put(ref.number, part.blob)
                self._written += (ref,)
        self._next = refs
        return refs

    async def head_stored(self) -> None:
        """The head that names what was written last is stored.

        Empty the parts that no one needs any more.
        """
        self.replaced_by(self._next)
        while self._outdated:
            number = min(self._outdated)
            await self._put(number, Blob())
            # Only now: a part that could not be emptied is tried again after the next head.
            self._outdated.discard(number)

    def is_foreign(self, seen: Callable[[str], Manifest | None]) -> bool:
        """Whether a part as last seen is not what the head names."""
        return any(not self._is_seen(seen(self._names[ref.number]), ref) for ref in self._named)

    def _is_seen(self, manifest: Manifest | None, ref: PartRef) -> bool:
        """Looks into each version of a part once only: it is large."""
        revision = manifest["metadata"]["resourceVersion"] if manifest is not None else None
        if revision is None or self._looked_at.get(ref) == revision:
            return revision is not None
        if _holds(manifest, ref):
            self._looked_at = {known: self._looked_at.get(known, "") for known in self._named}
            self._looked_at[ref] = str(revision)
            return True
        return False

    async def is_still_foreign(self) -> bool:
        """The same, of what is stored now. If so, all parts are written again the next time."""
        for ref in self._named:
            if not _holds(await self._get(ref.number), ref):
                self.forget()
                return True
        return False

    async def _put(self, number: int, blob: Blob) -> None:
        manifest = config_map_of(self._source, self._names[number], blob)
        found = await self._get(number)
        if found is None:
            await self._api.create(CONFIG_MAP, manifest)
            return
        metadata = {**manifest["metadata"], "resourceVersion": found["metadata"]["resourceVersion"]}
        await self._api.replace(CONFIG_MAP, {**manifest, "metadata": metadata})

    async def _get(self, number: int) -> Manifest | None:
        found = await self._api.get(CONFIG_MAP, self._source.namespace, self._names[number])
        return checked(self._source, CONFIG_MAP, found) if found is not None else None


def _holds(manifest: Manifest | None, ref: PartRef) -> bool:
    return manifest is not None and is_part(blob_of(manifest), ref)
