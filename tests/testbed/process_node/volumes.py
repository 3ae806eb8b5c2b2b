"""The volumes of a pod as folders of the host."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.process_node.atomic import FileContent, Payload, write_payload
from testbed.process_node.fields import PodFacts
from testbed.process_node.objects import MissingObjectError, Objects, UnsupportedError

_TOKEN_SECONDS = 3600
_RENEW_AFTER = 0.8  # of a token's life, as the kubelet does
_PAYLOADS = ("configMap", "secret", "downwardAPI", "projected")
Transform = Callable[[str, bytes], bytes]


def unchanged(_name: str, data: bytes) -> bytes:
    """The transformation of a volume's files that leaves them alone."""
    return data


@dataclass(slots=True, kw_only=True)
class Volumes:
    """The volumes of one pod.

    Attributes:
        pod: whose volumes.
        objects: where their content comes from.
        folder: gets a folder per volume.
        claims: gets a folder per PersistentVolumeClaim, which outlives the pod.
        transform: applied to each file of a ConfigMap: file name and content to new content.
        renew_at: when a token in them must be renewed, by the monotonic clock; None if there is
            none.
    """

    pod: PodFacts
    objects: Objects
    folder: Path
    claims: Path
    transform: Transform = unchanged
    renew_at: float | None = None
    _sources: dict[str, Path] = field(default_factory=dict)

    async def prepare(self) -> None:
        """Make all volumes.

        Raises:
            MissingObjectError: something that a volume shows is not there yet.
            UnsupportedError: a volume is of a kind that this node does not have.
        """
        for volume in self._volumes():
            self._sources[volume["name"]] = await self._make(volume)

    async def refresh(self, resource: str = "", name: str = "") -> list[str]:
        """Write those volumes again that show an object; all of them if none is named.

        Args:
            resource: `configmaps` or `secrets`.
            name: of the object.

        Returns:
            The names of the volumes whose content changed.
        """
        changed = []
        for volume in self._volumes():
            if (not name or (resource, name) in shown_objects(volume)) and _is_payload(volume):
                payload = await self._payload(volume)
                if write_payload(self.folder / volume["name"], payload):
                    changed.append(str(volume["name"]))
        return changed

    def mounts(self, container: Mapping[str, Any]) -> dict[str, str]:
        """Mount path and the host's path of each volume mount of a container."""
        found = {}
        for mount in container.get("volumeMounts", []):
            source = self._sources[mount["name"]]
            if sub_path := mount.get("subPath"):
                source = source / sub_path
                if not source.exists():
                    source.mkdir(parents=True)
            found[mount["mountPath"].rstrip("/")] = str(source)
        return found

    def _volumes(self) -> list[Mapping[str, Any]]:
        return list(self.pod.spec.get("volumes", []))

    async def _make(self, volume: Mapping[str, Any]) -> Path:
        folder = self.folder / str(volume["name"])
        if _is_payload(volume):
            write_payload(folder, await self._payload(volume))
        elif "emptyDir" in volume:
            folder.mkdir(parents=True, exist_ok=True)
        elif "hostPath" in volume:
            folder = _host_path(volume["hostPath"])
        elif "persistentVolumeClaim" in volume:
            folder = await self._claim(volume["persistentVolumeClaim"]["claimName"])
        else:
            kinds = ", ".join(sorted(set(volume) - {"name"}))
            raise UnsupportedError(
                f"volume {volume['name']}: {kinds} is not supported by the process node"
            )
        return folder

    async def _claim(self, name: str) -> Path:
        if not await self.objects.claim_exists(name):
            raise MissingObjectError(f'persistentvolumeclaim "{name}" not found')
        folder = self.claims / self.pod.namespace / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    async def _payload(self, volume: Mapping[str, Any]) -> Payload:
        if "projected" not in volume:
            return await self._source(volume, _default_mode(volume))
        payload: Payload = {}
        for source in volume["projected"].get("sources", []):
            payload |= await self._source(source, _default_mode(volume))
        return payload

    async def _source(self, source: Mapping[str, Any], mode: int) -> Payload:
        if reference := source.get("configMap"):
            data = await self.objects.config_map(reference)
            data = {key: self.transform(key, value) for key, value in data.items()}
            return _selected(data, reference, mode)
        if reference := source.get("secret"):
            return _selected(await self.objects.secret(reference), reference, mode)
        if reference := source.get("serviceAccountToken"):
            return {reference["path"]: FileContent(await self._token(reference), 0o600)}
        items = source.get("downwardAPI", {}).get("items", [])
        return {
            item["path"]: FileContent(self._field(item), item.get("mode", mode)) for item in items
        }

    def _field(self, item: Mapping[str, Any]) -> bytes:
        if "fieldRef" not in item:
            raise UnsupportedError(
                "resourceFieldRef in a volume is not supported by the process node"
            )
        return self.pod.field(item["fieldRef"]["fieldPath"]).encode()

    async def _token(self, reference: Mapping[str, Any]) -> bytes:
        seconds = int(reference.get("expirationSeconds", _TOKEN_SECONDS))
        token = await self.objects.token(self.pod, reference.get("audience"), seconds)
        due = time.monotonic() + seconds * _RENEW_AFTER
        self.renew_at = (
            min(due, self.renew_at) if self.renew_at and self.renew_at > time.monotonic() else due
        )
        return token.encode()


def shown_objects(volume: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Resource and name of the ConfigMaps and Secrets that a volume shows."""
    found = set()
    for source in [volume, *volume.get("projected", {}).get("sources", [])]:
        if reference := source.get("configMap"):
            found.add(("configmaps", str(reference["name"])))
        if reference := source.get("secret"):
            found.add(("secrets", str(reference.get("secretName") or reference["name"])))
    return found


def _is_payload(volume: Mapping[str, Any]) -> bool:
    return any(kind in volume for kind in _PAYLOADS)


def _default_mode(volume: Mapping[str, Any]) -> int:
    kind = next(kind for kind in _PAYLOADS if kind in volume)
    return int(volume[kind].get("defaultMode") or 0o644)


def _selected(data: Mapping[str, bytes], reference: Mapping[str, Any], mode: int) -> Payload:
    """All keys as files of their names, or only the listed ones under their paths."""
    items = reference.get("items")
    if items is None:
        return {key: FileContent(value, mode) for key, value in data.items()}
    missing = [item["key"] for item in items if item["key"] not in data]
    if missing and not reference.get("optional"):
        raise MissingObjectError(f"no such keys: {', '.join(missing)}")
    return {
        item["path"]: FileContent(data[item["key"]], item.get("mode") or mode)
        for item in items
        if item["key"] in data
    }


def _host_path(source: Mapping[str, Any]) -> Path:
    path = Path(source["path"])
    if source.get("type") == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        raise MissingObjectError(f"hostPath {path} does not exist")
    return path
