"""Which namespaces are served if labels select them."""

from collections.abc import Callable
from typing import Final, TypeAlias

import structlog

from balanced_source_operator.kube.informer import Informer
from balanced_source_operator.kube.port import Manifest
from balanced_source_operator.kube.stream import Stream
from balanced_source_operator.resources.kinds import NAMESPACE, ResourceKind

OnNamespace: TypeAlias = Callable[[str, bool], None]
"""Gets the name of a namespace, and whether it is served from now on."""

log: Final = structlog.get_logger(__name__)


class ServedNamespaces:
    """Holds the names of the namespaces whose labels match, as the API server matches them.

    While the API server does not answer, the last known names stay: an unknown namespace must not
    stop its sources.

    Args:
        stream: lists and watches.
        selector: labels of the namespaces.
        on_change: is told when a namespace begins or ceases to match.

    Attributes:
        informer: must run for this to follow anything.
    """

    def __init__(self, stream: Stream, selector: str, on_change: OnNamespace) -> None:
        self._names: set[str] = set()
        self._selector = selector
        self._on_change = on_change
        self.informer = Informer(stream, NAMESPACE, "", selector=selector, tell=self._note)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def report(self) -> None:
        """Log how many namespaces match."""
        if self.informer.is_live and not self._names:
            log.warning(
                "no namespace has labels that match the selector; label one to serve its sources",
                selector=self._selector,
            )
        elif self.informer.is_live:
            log.info("namespaces selected", selector=self._selector, number=len(self._names))

    def _note(self, kind: ResourceKind, event: str, manifest: Manifest) -> None:
        # The API server also reports a namespace as deleted when it loses the label.
        name, is_served = str(manifest["metadata"]["name"]), event != "DELETED"
        if is_served == (name in self._names):
            return
        if is_served:
            self._names.add(name)
        else:
            self._names.remove(name)
        log.info(
            "namespace is served" if is_served else "namespace is no longer served", namespace=name
        )
        self._on_change(name, is_served)
