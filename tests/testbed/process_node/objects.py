"""ConfigMaps, Secrets and tokens that pods refer to."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testbed.process_node.api import Api, ApiError
from testbed.process_node.fields import PodFacts


class MissingObjectError(Exception):
    """Something that the pod refers to does not exist yet; Spark makes pods before ConfigMaps."""


class UnsupportedError(Exception):
    """The pod asks for something that this node cannot do; waiting will not help."""


@dataclass(frozen=True, slots=True)
class Objects:
    """Reads the objects of one namespace.

    Attributes:
        api: the connection.
        namespace: of the pod.
    """

    api: Api
    namespace: str

    async def config_map(self, reference: Mapping[str, Any]) -> dict[str, bytes]:
        """Keys and values of a ConfigMap; empty if it is missing and optional."""
        found = await self._get(
            "configmaps", reference["name"], optional=bool(reference.get("optional"))
        )
        texts = {key: value.encode() for key, value in (found.get("data") or {}).items()}
        return texts | _decoded(found.get("binaryData"))

    async def secret(self, reference: Mapping[str, Any]) -> dict[str, bytes]:
        """Keys and values of a Secret; empty if it is missing and optional."""
        name = reference.get("secretName") or reference["name"]
        found = await self._get("secrets", name, optional=bool(reference.get("optional")))
        return _decoded(found.get("data"))

    async def token(self, pod: PodFacts, audience: str | None, seconds: int) -> str:
        """A token of the pod's service account, bound to the pod."""
        bound = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
        spec: dict[str, Any] = {"expirationSeconds": seconds, "boundObjectRef": bound}
        if audience:
            spec["audiences"] = [audience]
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{pod.service_account}/token"
        try:
            answer = await self.api.request("POST", path, {"spec": spec})
        except ApiError as error:
            raise MissingObjectError(f"no token for {pod.service_account}: {error}") from error
        return str(answer["status"]["token"])

    async def claim_exists(self, name: str) -> bool:
        """Whether there is a PersistentVolumeClaim of this name."""
        path = f"/api/v1/namespaces/{self.namespace}/persistentvolumeclaims/{name}"
        return await self.api.find(path) is not None

    async def _get(self, resource: str, name: str, *, optional: bool) -> dict[str, Any]:
        found = await self.api.find(f"/api/v1/namespaces/{self.namespace}/{resource}/{name}")
        if found is None and not optional:
            raise MissingObjectError(f'{resource} "{name}" not found')
        return found or {}


def _decoded(data: Mapping[str, str] | None) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in (data or {}).items()}
