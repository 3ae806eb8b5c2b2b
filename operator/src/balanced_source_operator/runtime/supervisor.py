"""Keeps one task per BalancedSource, and passes on what handlers see."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, NAME_LABEL, ResourceKind
from balanced_source_operator.runtime.environment import Environment
from balanced_source_operator.runtime.observed import revision
from balanced_source_operator.runtime.source_runtime import SourceRuntime

log = structlog.get_logger(__name__)

_Key = tuple[str, str]


class Supervisor:
    """Used on one event loop."""

    def __init__(self, environment: Environment) -> None:
        self._env = environment
        self._running: dict[_Key, tuple[Identity, SourceRuntime, asyncio.Task[None]]] = {}
        self._ending: dict[asyncio.Task[None], _Key] = {}

    def on_source(self, event: str | None, body: Mapping[str, Any]) -> None:
        """A BalancedSource was seen: serve it, or tell the task that does."""
        source = Identity.of(body)
        key = (source.namespace, source.name)
        known = self._running.get(key)
        if known is not None and known[0].uid != source.uid and revision(body) < known[1].revision:
            return  # of a former source of this name: events of different objects come in any order
        # Another identity is another source: it must not continue with what is known of the former
        # one.
        if known is not None and (known[0] != source or known[2].done()):
            self._end(key)
            known = None
        if known is not None:
            known[1].note(BALANCED_SOURCE, event, body)
        elif event != "DELETED" and not body["metadata"].get("deletionTimestamp"):
            runtime = SourceRuntime(self._env, body)
            former = [task for task, of in self._ending.items() if of == key]
            task = asyncio.create_task(
                self._run_after(former, source, runtime),
                name=f"source {source.namespace}/{source.name}",
            )
            self._running[key] = (source, runtime, task)
            task.add_done_callback(lambda ended: self._forget(key, ended))

    def on_child(self, kind: ResourceKind, event: str | None, manifest: Mapping[str, Any]) -> None:
        """A child or a pod was seen."""
        metadata = manifest["metadata"]
        key = (metadata["namespace"], metadata.get("labels", {}).get(NAME_LABEL, ""))
        if (known := self._running.get(key)) is not None:
            known[1].note(kind, event, manifest)

    def let_go(self, namespace: str) -> None:
        """Stop serving a namespace: end the tasks of its sources, and leave all objects alone.

        A source that comes back is served after its former task has ended.
        """
        for key in [key for key in self._running if key[0] == namespace]:
            self._end(key)

    async def _run_after(
        self, former: Sequence[asyncio.Task[None]], source: Identity, runtime: SourceRuntime
    ) -> None:
        """Run a source after its former tasks, whose end forgets what is known of the source."""
        if former:
            await asyncio.wait(former)
        self._env.alignments.expect(source)
        await runtime.run()

    def _end(self, key: _Key) -> None:
        _, _, task = self._running.pop(key)
        if not task.done():
            self._ending[task] = key
            task.add_done_callback(self._ending.pop)
            task.cancel()

    def _forget(self, key: _Key, ended: asyncio.Task[None]) -> None:
        """Keep nothing of a source that is gone."""
        known = self._running.get(key)
        if known is not None and known[2] is ended:
            del self._running[key]

    @property
    def sources(self) -> int:
        """Number of sources that are served."""
        return sum(not task.done() for _, _, task in self._running.values())

    async def stop(self) -> None:
        """End all tasks. What they were at is taken up by the next operator."""
        tasks = [*self._ending, *(task for _, _, task in self._running.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._running.clear()
