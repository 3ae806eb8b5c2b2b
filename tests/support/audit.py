"""Counts the requests that reach a real API server, from its audit log."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [ResponseStarted, ResponseComplete, Panic]
rules:
- level: Metadata
  resources: [{group: "", resources: [configmaps]}]
- level: None
"""


class AuditLog:
    """Requests for ConfigMaps, in the order in which the API server received them.

    Args:
        folder: gets the policy and the log.
    """

    def __init__(self, folder: Path) -> None:
        self._policy, self._log = folder / "audit-policy.yaml", folder / "audit.log"
        self._policy.write_text(_POLICY)

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of the API server that writes the log."""
        return f"--audit-policy-file={self._policy}", f"--audit-log-path={self._log}"

    def verbs(self, user: str, name: str) -> list[str]:
        """What `user` asked of the ConfigMap `name`: get, list, watch, patch."""
        return [event["verb"] for event in self._events() if _is_about(event, user, name)]

    def _events(self) -> Iterator[dict[str, Any]]:
        for line in self._log.read_text().splitlines() if self._log.exists() else ():
            yield json.loads(line)


def _is_about(event: dict[str, Any], user: str, name: str) -> bool:
    is_named = (
        event["objectRef"].get("name") == name or f"metadata.name%3D{name}" in event["requestURI"]
    )
    return is_named and event["user"]["username"] == user
