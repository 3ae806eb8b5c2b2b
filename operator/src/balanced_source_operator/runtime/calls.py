"""Executes a coordinator's calls off the event loop, and hands the results back to its source's task."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from balanced_source.api import AsyncCall, CallFailure
from balanced_source.connectors.kafka import DiscoverKafka, InitializeKafka
from balanced_source.coordinator import CallCompleted, ExecuteCall
from balanced_source.errors import RefusedDiscoveryError
from balanced_source_adapters.coordinator_loop import kafka_executor
from balanced_source_adapters.kafka_admin import KafkaAdmin
from balanced_source_operator.kube.port import KubernetesApi, KubernetesError
from balanced_source_operator.runtime.secrets import SecretCache


class CallRunner:
    """Calls of one coordinator. Close it with its coordinator: a result must never reach another one."""

    def __init__(
        self,
        api: KubernetesApi,
        namespace: str,
        pool: Executor,
        deliver: Callable[[CallCompleted], None],
        *,
        client_id: str,
    ) -> None:
        self._secrets = SecretCache(api, namespace)
        self._call = kafka_executor(KafkaAdmin(self._secrets, client_id=client_id))
        self._pool = pool
        self._deliver = deliver
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, effect: ExecuteCall) -> None:
        """Execute later, in the background."""
        task = asyncio.create_task(self._execute(effect))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Deliver nothing any more."""
        for task in self._tasks:
            task.cancel()

    async def _execute(self, effect: ExecuteCall) -> None:
        await asyncio.sleep(effect.delay)
        try:
            result = await self._result(effect.call)
        except Exception as error:  # noqa: BLE001 - whatever it was, the enumerator decides what it means
            result = CallFailure(error)
        self._deliver(CallCompleted(effect.call_id, result))

    async def _result(self, call: AsyncCall) -> Any:
        if isinstance(call, DiscoverKafka | InitializeKafka):
            await self._load_secrets(call.cluster.secrets, call.scope)
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._call, call)

    async def _load_secrets(self, names: tuple[str, ...], scope: str) -> None:
        try:
            await self._secrets.load(names)
        except KubernetesError as error:
            raise RefusedDiscoveryError(
                f"cluster {scope}: cannot read its Secrets: {error}", scope=scope, reason="SecretNotReadable"
            ) from error
