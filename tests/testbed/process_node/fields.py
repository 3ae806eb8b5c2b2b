"""What a pod can say about itself, and references between environment variables. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

_MAP_FIELD = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")
HOST_IP = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """A pod as the node sees it.

    Attributes:
        document: the pod object.
        node: name of the node.
        ip: address of the pod.
    """

    document: Mapping[str, Any]
    node: str
    ip: str

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The pod's metadata."""
        metadata: Mapping[str, Any] = self.document["metadata"]
        return metadata

    @property
    def spec(self) -> Mapping[str, Any]:
        """The pod's spec."""
        spec: Mapping[str, Any] = self.document["spec"]
        return spec

    @property
    def name(self) -> str:
        """The pod's name."""
        return str(self.metadata["name"])

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return str(self.metadata["namespace"])

    @property
    def uid(self) -> str:
        """The pod's uid, which tells it from others of its name."""
        return str(self.metadata["uid"])

    @property
    def service_account(self) -> str:
        """The service account that the pod runs as."""
        return str(self.spec.get("serviceAccountName", "default"))

    def with_document(self, document: Mapping[str, Any]) -> Self:
        """The same pod after a change of its object."""
        return type(self)(document=document, node=self.node, ip=self.ip)

    def field(self, path: str) -> str:
        """The value of a `fieldRef`.

        Raises:
            ValueError: there is no such field.
        """
        if entry := _MAP_FIELD.fullmatch(path):
            return str(self.metadata.get(entry[1], {}).get(entry[2], ""))
        if path in ("metadata.labels", "metadata.annotations"):
            entries = self.metadata.get(path.removeprefix("metadata."), {})
            return "".join(f'{key}="{value}"\n' for key, value in sorted(entries.items()))
        values = {
            "metadata.name": self.name,
            "metadata.namespace": self.namespace,
            "metadata.uid": self.uid,
            "spec.nodeName": self.node,
            "spec.serviceAccountName": self.service_account,
            "status.podIP": self.ip,
            "status.podIPs": self.ip,
            "status.hostIP": HOST_IP,
            "status.hostIPs": HOST_IP,
        }
        if path not in values:
            raise ValueError(f"field {path} is not known to the process node")
        return values[path]


def resource_field(container: Mapping[str, Any], reference: Mapping[str, Any]) -> str:
    """The value of a `resourceFieldRef`: what the container states, else 0.

    No unit is converted.
    """
    kind, _, name = str(reference["resource"]).partition(".")
    return str(container.get("resources", {}).get(kind, {}).get(name, "0"))


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by values; unknown names stay as they are, `$$` is a dollar sign."""

    def value(reference: re.Match[str]) -> str:
        if reference[0] == "$$":
            return "$"
        return values.get(reference[1], reference[0])

    return _REFERENCE.sub(value, text)
