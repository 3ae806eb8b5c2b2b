"""Which BalancedSource something belongs to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from balanced_source.documents.storage import Names
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, MANAGED_LABEL, MANAGER, NAME_LABEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Name, namespace and uid of a BalancedSource."""

    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "Identity":
        """Of a BalancedSource's manifest."""
        metadata = body["metadata"]
        return cls(namespace=metadata["namespace"], name=metadata["name"], uid=metadata["uid"])

    @property
    def documents(self) -> Names:
        """Names of its ConfigMaps."""
        return Names.of(self.name)

    @property
    def selector(self) -> str:
        """Label selector of its children and pods."""
        return f"{NAME_LABEL}={self.name}"

    @property
    def labels(self) -> dict[str, str]:
        """Labels of its children."""
        return {NAME_LABEL: self.name, MANAGED_LABEL: MANAGER}

    def metadata(self, name: str, **more: Any) -> dict[str, Any]:
        """Metadata of a child: owned, so that it goes when the source goes."""
        owner = {
            "apiVersion": BALANCED_SOURCE.api_version,
            "kind": BALANCED_SOURCE.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": self.labels,
            "ownerReferences": [owner],
            **more,
        }
