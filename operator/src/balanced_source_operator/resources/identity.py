"""Which BalancedSource something belongs to."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from balanced_source.documents.storage import FIRST_HOST, Names, base_of
from balanced_source_operator.resources.kinds import (
    BALANCED_SOURCE,
    FORMER_UID_ANNOTATION,
    HOST_LABEL,
    MANAGED_LABEL,
    MANAGER,
    NAME_LABEL,
    UID_LABEL,
)

_OF_FURTHER_HOST: Final = re.compile(r"-h(\d+)-[0-9a-f]{6}-\d+\Z")
"""How the name of an application of a further host continues behind that of the source. Without the
source's name in it: `re` keeps 512 expressions, and would compile one for each look at a thousand
sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Name, namespace and uid of a BalancedSource, and which of its hosts is meant.

    Attributes:
        namespace: of the source and of all its objects.
        name: of the source.
        uid: of the source.
        former: uid of the source before it was restored from a backup; empty if it was not.
        host: whose objects are meant; the first one's, unless said otherwise.
    """

    namespace: str
    name: str
    uid: str
    former: str = ""
    host: str = FIRST_HOST

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "Identity":
        """Of a BalancedSource's manifest."""
        metadata = body["metadata"]
        former = (metadata.get("annotations") or {}).get(FORMER_UID_ANNOTATION, "")
        return cls(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            former=former,
        )

    @property
    def documents(self) -> Names:
        """Names of its ConfigMaps."""
        return Names.of(self.name, self.host, uid=self.uid)

    @property
    def base(self) -> str:
        """What the names of the host's own objects begin with."""
        return base_of(self.name, self.host, uid=self.uid)

    def on_host(self, host: str) -> Self:
        """Return the identity of a host of this source."""
        return replace(self, host=host)

    def host_of(self, application: str) -> str:
        """Return the host that an application of this source belongs to, by its name."""
        rest = application.removeprefix(self.name)
        found = _OF_FURTHER_HOST.match(rest)
        if found is None or rest == application:
            return FIRST_HOST
        # A source may be called like a host of another one: the hash of uid and host tells them
        # apart.
        is_ours = application.startswith(f"{base_of(self.name, found[1], uid=self.uid)}-")
        return found[1] if is_ours else FIRST_HOST

    @property
    def selector(self) -> str:
        """Label selector of its children and pods."""
        return f"{NAME_LABEL}={self.name}"

    @property
    def labels(self) -> dict[str, str]:
        """Labels of its children."""
        return {**self.pod_labels, UID_LABEL: self.uid, MANAGED_LABEL: MANAGER}

    @property
    def pod_labels(self) -> dict[str, str]:
        """Labels of its pods."""
        host = {HOST_LABEL: self.host} if self.host != FIRST_HOST else {}
        return {NAME_LABEL: self.name, **host}

    def owns(self, manifest: Mapping[str, Any]) -> bool:
        """Return whether an object carries this source's uid, or its former one, in any form."""
        metadata = manifest["metadata"]
        uids = {owner.get("uid") for owner in metadata.get("ownerReferences") or ()}
        # Either form is enough: someone may have removed the label, or the owner reference.
        uids.add((metadata.get("labels") or {}).get(UID_LABEL))
        return self.uid in uids or (self.former != "" and self.former in uids)

    def is_bound(self, manifest: Mapping[str, Any]) -> bool:
        """Return whether an object goes when this source is deleted."""
        owners = manifest["metadata"].get("ownerReferences") or ()
        return any(owner.get("uid") == self.uid for owner in owners)

    def is_marked(self, manifest: Mapping[str, Any]) -> bool:
        """Return whether an object is bound and has all labels for watching and recognising it."""
        return (
            self.is_bound(manifest)
            and (manifest["metadata"].get("labels") or {}).items() >= self.labels.items()
        )

    def namesake_uid(self, manifest: Mapping[str, Any]) -> str:
        """Return the uid of another source of this name that owns an object; empty if none does."""
        metadata = manifest["metadata"]
        labels = metadata.get("labels") or {}
        namesake = {"kind": BALANCED_SOURCE.kind, "name": self.name}
        owners = [
            owner
            for owner in metadata.get("ownerReferences") or ()
            if owner.items() >= namesake.items()
        ]
        uids = [owner.get("uid", "") for owner in owners]
        uids += [labels.get(UID_LABEL, "")] if labels.get(NAME_LABEL) == self.name else []
        return next((str(uid) for uid in uids if uid not in ("", self.uid)), "")

    def metadata(self, name: str, **more: Any) -> dict[str, Any]:
        """Metadata of a child: owned, so that it goes when the source goes."""
        owner = {
            "apiVersion": BALANCED_SOURCE.api_version,
            "kind": BALANCED_SOURCE.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            # A deletion in the foreground waits until this object is gone.
            "blockOwnerDeletion": True,
        }
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": self.labels,
            "ownerReferences": [owner],
            **more,
        }
