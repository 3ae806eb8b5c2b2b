"""Sources of the namespaces that labels select; those of other namespaces wait here."""

from collections.abc import Container, Mapping
from typing import Any

from balanced_source_operator.kube.informer import slim
from balanced_source_operator.kube.port import Manifest
from balanced_source_operator.resources.kinds import BALANCED_SOURCE
from balanced_source_operator.runtime.observed import revision
from balanced_source_operator.runtime.supervisor import Supervisor


class ServedSources:
    """Stands before the supervisor, which hears only of sources that are to be served.

    Nothing that comes early is lost: sources that are seen before their namespace is known to be
    served start when it is.

    Args:
        supervisor: serves sources.
        namespaces: those that are served now.
    """

    def __init__(self, supervisor: Supervisor, namespaces: Container[str]) -> None:
        self._supervisor = supervisor
        self._namespaces = namespaces
        self._bodies: dict[str, dict[str, Manifest]] = {}

    def on_source(self, event: str | None, body: Mapping[str, Any]) -> None:
        """A BalancedSource of any namespace was seen."""
        self._remember(event, body)
        if body["metadata"]["namespace"] in self._namespaces:
            self._supervisor.on_source(event, body)

    def on_namespace(self, name: str, is_served: bool) -> None:
        """A namespace is served from now on, or no longer."""
        if not is_served:
            self._supervisor.let_go(name)
            return
        for body in list(self._bodies.get(name, {}).values()):
            self._supervisor.on_source(None, body)

    def _remember(self, event: str | None, body: Mapping[str, Any]) -> None:
        metadata = body["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        known = self._bodies.setdefault(namespace, {})
        # Events of different objects come in any order: the former one of this name may be late.
        if name in known and revision(body) < revision(known[name]):
            return
        if event != "DELETED":
            known[name] = slim(BALANCED_SOURCE, body)
        else:
            known.pop(name, None)
        if not known:
            del self._bodies[namespace]
