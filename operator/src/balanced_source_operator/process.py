"""The operator process.

Wires everything, elects a leader if asked to, runs until it is told to stop.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import structlog
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, Configuration
from prometheus_client import start_http_server

from balanced_source_adapters.collector import YOUNG_BESIDE_KOPF, collect_rarely
from balanced_source_adapters.heap import keep_small
from balanced_source_operator.ending import STOP_SECONDS, end_within, on_stop_signals
from balanced_source_operator.following import Following
from balanced_source_operator.handlers import KopfFollower, OnSource
from balanced_source_operator.health import Health, Role, answering_probes, watch_rights
from balanced_source_operator.kube.cached import CachedApi
from balanced_source_operator.kube.client import KubernetesClient
from balanced_source_operator.kube.informer import Tell
from balanced_source_operator.kube.namespaces import OnNamespace
from balanced_source_operator.kube.port import Manifest
from balanced_source_operator.kube.rights import RightsCheck
from balanced_source_operator.kube.session import open_client
from balanced_source_operator.kube.stream import KubernetesStream
from balanced_source_operator.kube.watches import Watches
from balanced_source_operator.leadership import serve_while_leading
from balanced_source_operator.metrics import Metrics
from balanced_source_operator.page.beside import answering_viewers
from balanced_source_operator.page.board import StatusBoard
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, ResourceKind
from balanced_source_operator.runtime.audience import NoAudience
from balanced_source_operator.runtime.call_pool import LanePool
from balanced_source_operator.runtime.environment import Environment
from balanced_source_operator.runtime.metered import MeteredApi
from balanced_source_operator.runtime.restart_slots import RestartSlots
from balanced_source_operator.runtime.served_sources import ServedSources
from balanced_source_operator.runtime.supervisor import Supervisor
from balanced_source_operator.settings import Settings

CONNECTIONS: Final = 32
"""Connections for requests to the API server; watches have their own.

The client takes the connection that has been idle longest. So all that a burst has opened stay open
while there are a few requests a second, at some hundreds of KiB each.
"""

log = structlog.get_logger(__name__)


def run(settings: Settings) -> None:
    """Run the operator until SIGTERM or SIGINT."""
    collect_rarely(YOUNG_BESIDE_KOPF)
    keep_small()
    asyncio.run(_run(settings))


async def _run(settings: Settings) -> None:
    stop = asyncio.Event()
    on_stop_signals(partial(asyncio.get_running_loop().call_soon_threadsafe, stop.set))
    metrics, health = Metrics(), Health()
    metrics.follow(is_leader=lambda: health.role is Role.SERVING, is_ready=lambda: health.is_ready)
    if settings.metrics_port:
        start_http_server(settings.metrics_port, registry=metrics.registry)
    board = StatusBoard()
    async with (
        _client() as client,
        answering_probes(health, settings.probe_port),
        answering_viewers(settings, board, client, is_serving=lambda: health.role is Role.SERVING),
    ):
        check = RightsCheck(
            client,
            settings.namespaces,
            selector=settings.namespace_selector,
            lease_namespace=settings.lease_namespace,
        )
        rights = asyncio.create_task(watch_rights(health, check.missing))
        try:
            await _lead(
                settings,
                client,
                stop,
                health,
                partial(
                    _serve, settings, client, stop, metrics=metrics, board=board, health=health
                ),
            )
        finally:
            rights.cancel()


async def _lead(
    settings: Settings,
    client: ApiClient,
    stop: asyncio.Event,
    health: Health,
    serve: Callable[[], Awaitable[None]],
) -> None:
    """Serve at once without leader election, else when this replica leads."""

    async def serve_now() -> None:
        health.role = Role.SERVING
        await serve()

    if not settings.lease_namespace:
        await serve_now()
        return
    health.role = Role.STANDING_BY
    await serve_while_leading(
        serve_now, client, namespace=settings.lease_namespace, identity=settings.identity, stop=stop
    )


@asynccontextmanager
async def _client(*, connections: int = CONNECTIONS) -> AsyncIterator[ApiClient]:
    """A client with so many connections at most; 0 for as many as are needed."""
    configuration = Configuration()
    configuration.connection_pool_maxsize = connections
    if os.environ.get("KUBECONFIG") or not os.environ.get("KUBERNETES_SERVICE_HOST"):
        await config.load_kube_config(client_configuration=configuration)
    else:
        config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    async with open_client(configuration) as client:
        yield client


async def _serve(
    settings: Settings,
    client: ApiClient,
    stop: asyncio.Event,
    *,
    metrics: Metrics,
    board: StatusBoard,
    health: Health,
) -> None:
    supervisors: list[Supervisor] = []
    sources: list[ServedSources] = []

    def tell(kind: ResourceKind, event: str, manifest: Manifest) -> None:
        for supervisor in supervisors:
            supervisor.on_child(kind, event, manifest)

    def on_namespace(name: str, is_served: bool) -> None:
        for one in sources:
            one.on_namespace(name, is_served)

    async with _watching(settings, tell, on_namespace) as watches:
        kubernetes = KubernetesClient(client)
        api = CachedApi(MeteredApi(kubernetes, metrics), watches.informers)
        restarts = RestartSlots(settings.max_restarts)
        audience = board if settings.page_port else NoAudience()
        supervisor = Supervisor(
            Environment(
                api=api,
                settings=settings,
                pool=LanePool(),
                metrics=metrics,
                restarts=restarts,
                audience=audience,
            )
        )
        supervisors.append(supervisor)
        if watches.served is None:
            tell_source = supervisor.on_source
        else:
            sources.append(ServedSources(supervisor, watches.served))
            tell_source = sources[0].on_source
        is_served = partial(kubernetes.serves, BALANCED_SOURCE)
        await _follow(settings, supervisor, stop, tell_source, health=health, is_served=is_served)


@asynccontextmanager
async def _watching(
    settings: Settings, tell: Tell, on_namespace: OnNamespace
) -> AsyncIterator[Watches]:
    # A client of its own: watches hold their connections, and must not take those of requests.
    async with _client(connections=0) as client:
        watches = Watches(
            KubernetesStream(client),
            settings.namespaces,
            settings.namespace_selector,
            tell=tell,
            on_namespace=on_namespace,
        )
        async with watches.running():
            yield watches


async def _follow(
    settings: Settings,
    supervisor: Supervisor,
    stop: asyncio.Event,
    tell: OnSource,
    *,
    health: Health,
    is_served: Callable[[], Awaitable[bool]],
) -> None:
    """Tell of all sources until the process is told to stop."""
    served = settings.namespaces or settings.namespace_selector or "all"
    log.info("serving", namespaces=served, identity=settings.identity)
    try:
        follower = partial(KopfFollower, settings, tell)
        await Following(follower, is_served=is_served, health=health, stop=stop).run()
    finally:
        end_within(STOP_SECONDS)
        await supervisor.stop()
    log.info("stopped", sources=supervisor.sources)
