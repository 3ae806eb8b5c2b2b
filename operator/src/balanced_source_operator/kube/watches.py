"""All watches of the process: what begins them, waits for their first lists, and ends them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import structlog

from balanced_source_operator.kube.cached import informers_for
from balanced_source_operator.kube.informer import Informer, Tell
from balanced_source_operator.kube.namespaces import OnNamespace, ServedNamespaces
from balanced_source_operator.kube.stream import Stream

FIRST_LIST: Final = 20.0
"""Seconds to wait for the first lists of all objects."""

log: Final = structlog.get_logger(__name__)


class Watches:
    """Informers of sources and their objects, and of namespaces if labels select those.

    Args:
        stream: lists and watches.
        namespaces: to watch; none given means all of them.
        selector: labels of the namespaces that are served; empty if labels do not matter.
        tell: gets kind, event and object of each change in a namespace that is served.
        on_namespace: is told of namespaces that begin or cease to match `selector`.

    Attributes:
        served: the namespaces that match; None if labels do not matter.
        informers: of sources and their objects.
    """

    def __init__(
        self,
        stream: Stream,
        namespaces: Sequence[str],
        selector: str,
        *,
        tell: Tell,
        on_namespace: OnNamespace,
    ) -> None:
        self._tell_namespace = on_namespace
        self.served = ServedNamespaces(stream, selector, self._on_namespace) if selector else None
        self.informers = informers_for(stream, namespaces, tell, only=self.served)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run informers; they have listed everything that they can list when the body begins."""
        tasks: list[asyncio.Task[None]] = []
        try:
            if self.served is not None:
                # Before the others, which keep nothing of namespaces that are not served.
                await _start([self.served.informer], tasks)
                self.served.report()
            await _start(self.informers, tasks)
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _on_namespace(self, name: str, is_served: bool) -> None:
        for informer in self.informers:
            if is_served:
                informer.add(name)
            else:
                informer.forget(name)
        self._tell_namespace(name, is_served)


async def _start(informers: Sequence[Informer], tasks: list[asyncio.Task[None]]) -> None:
    tasks += [
        asyncio.create_task(informer.run(), name=f"informer {informer.kind.plural}")
        for informer in informers
    ]
    try:
        async with asyncio.timeout(FIRST_LIST):
            await asyncio.gather(*(informer.first() for informer in informers))
    # A kind that cannot be listed must not keep all sources from being served.
    except TimeoutError:
        log.warning("the first lists take long; sources are asked for one by one meanwhile")
