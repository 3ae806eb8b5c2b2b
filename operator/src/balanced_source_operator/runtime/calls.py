"""Executes a coordinator's calls off the event loop, and hands the results to its source."""

import asyncio
from collections.abc import Callable
from typing import Any, assert_never

from balanced_source.api import AsyncCall, Caller, CallFailure, Connector, DriverOnly, NamedSecrets
from balanced_source.connectors.discovery import Alarm
from balanced_source.coordinator import CallCompleted, ExecuteCall
from balanced_source.errors import RefusedDiscoveryError
from balanced_source.reasons import Reason
from balanced_source_adapters.mistakes import call_error
from balanced_source_operator.kube.port import KubernetesApi, KubernetesError
from balanced_source_operator.runtime.call_pool import CallPool
from balanced_source_operator.runtime.driver_calls import CallsThroughDriver
from balanced_source_operator.runtime.secrets import SecretCache


class CallRunner:
    """Calls of one coordinator.

    Close it with its coordinator: a result must never reach another one.
    """

    def __init__(
        self,
        api: KubernetesApi,
        namespace: str,
        pool: CallPool,
        deliver: Callable[[CallCompleted], None],
        *,
        source: str,
        connector: Connector,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """Runs calls for the source of that name in `namespace`, and hands results to `deliver`.

        `changed` is called when a driver has to be asked for something, or need not be asked any
        more.

        Raises:
            ConnectorError: the connector cannot be used here.
        """
        self._secrets = SecretCache(api, namespace)
        client_id = f"balanced-source-operator-{namespace}-{source}"
        self._connector = connector
        self._call = connector.executor(self._secrets, caller=Caller.OPERATOR, client_id=client_id)
        codec = connector.codec
        self.driver = CallsThroughDriver(codec, changed) if codec is not None else None
        self._pool = pool
        self._owner = (namespace, source)
        self._deliver = deliver
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, effect: ExecuteCall) -> None:
        """Execute later, in the background."""
        task = asyncio.create_task(self._execute(effect))
        # The event loop refers to tasks weakly: one that no one keeps may be collected while it
        # waits.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Deliver nothing any more."""
        for task in self._tasks:
            task.cancel()
        self._pool.forget(self._owner)

    async def _execute(self, effect: ExecuteCall) -> None:
        await asyncio.sleep(effect.delay)
        try:
            result = await self._result(effect.call)
        except Exception as error:  # noqa: BLE001
            # Whatever it was, the enumerator decides what it means
            result = CallFailure(call_error(self._connector.kind, effect.call, error))
        self._deliver(CallCompleted(effect.call_id, result))

    async def _result(self, call: AsyncCall) -> Any:
        # The delay was all that an alarm asks for.
        if isinstance(call, Alarm):
            return None
        scope = getattr(call, "scope", None)
        match self._connector.identity_of(call):
            case NamedSecrets(names):
                # Before each call: a Secret that has changed takes effect without a restart.
                await self._load_secrets(names, scope)
            case DriverOnly():
                if self.driver is None:
                    raise self._refused(scope)
                return await self.driver.ask(call)
            case other:
                assert_never(other)
        server = self._connector.server_of(call)
        return await self._pool.run((self._owner, scope), self._call, call, server=server)

    def _refused(self, scope: str | None) -> RefusedDiscoveryError:
        return RefusedDiscoveryError(
            f"{scope or 'the source'} can be listed only by a process of its owner: connector"
            f" {self._connector.kind!r} needs files or an identity that the source does not name,"
            " and the operator does not lend its own. Its connector does not let a driver list it"
            " either. Read the source without an operator, or by local mode",
            scope=scope or "",
            reason=Reason.NEEDS_OWNER,
        )

    async def _load_secrets(self, names: tuple[str, ...], scope: str | None) -> None:
        try:
            await self._secrets.load(names)
        except KubernetesError as error:
            raise RefusedDiscoveryError(
                f"{scope or 'the source'}: cannot read its Secrets: {error}",
                scope=scope or "",
                reason=Reason.SECRET_NOT_READABLE,
            ) from error
