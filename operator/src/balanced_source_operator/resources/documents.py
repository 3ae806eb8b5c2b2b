"""ConfigMaps that hold documents."""

from typing import Any

from balanced_source.documents.storage import Blob, pack
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import CONFIG_MAP


def config_map(source: Identity, name: str, document: str | None) -> dict[str, Any]:
    """A ConfigMap with a document, or an empty one for someone else to write."""
    return config_map_of(source, name, pack(document) if document is not None else Blob())


def config_map_of(source: Identity, name: str, blob: Blob) -> dict[str, Any]:
    """A ConfigMap with that content."""
    manifest: dict[str, Any] = {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": source.metadata(name),
    }
    if blob.data:
        manifest["data"] = dict(blob.data)
    if blob.binary:
        manifest["binaryData"] = dict(blob.binary)
    return manifest


def blob_of(manifest: Any) -> Blob:
    """Content of a ConfigMap."""
    return Blob(data=manifest.get("data") or {}, binary=manifest.get("binaryData") or {})
