"""The operator process: wires everything, elects a leader if asked to, runs until it is told to stop."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Final

import kopf
import structlog
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, Configuration
from kubernetes_asyncio.leaderelection.electionconfig import Config
from kubernetes_asyncio.leaderelection.leaderelection import LeaderElection
from kubernetes_asyncio.leaderelection.resourcelock.leaselock import LeaseLock
from prometheus_client import start_http_server

from balanced_source_operator.handlers import build_registry
from balanced_source_operator.kube.client import KubernetesClient
from balanced_source_operator.metrics import Metrics
from balanced_source_operator.runtime.environment import Environment
from balanced_source_operator.runtime.supervisor import Supervisor
from balanced_source_operator.settings import Settings

CALL_THREADS: Final = 32
"""Threads for calls to brokers; one that does not answer holds a thread for ten seconds."""

LEASE_NAME: Final = "balanced-source-operator"
LEASE_SECONDS: Final = 15
RENEW_SECONDS: Final = 10
RETRY_SECONDS: Final = 2

log = structlog.get_logger(__name__)


def run(settings: Settings) -> None:
    """Run the operator until SIGTERM or SIGINT."""
    asyncio.run(_run(settings))


async def _run(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    metrics = Metrics()
    if settings.metrics_port:
        start_http_server(settings.metrics_port, registry=metrics.registry)
    async with _client() as client:
        if settings.lease_namespace:
            await _lead(settings, client, metrics, stop)
        else:
            await _serve(settings, client, metrics, stop)


@asynccontextmanager
async def _client() -> AsyncIterator[ApiClient]:
    configuration = Configuration()
    if os.environ.get("KUBECONFIG") or not os.environ.get("KUBERNETES_SERVICE_HOST"):
        await config.load_kube_config(client_configuration=configuration)
    else:
        config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    async with ApiClient(configuration) as client:
        yield client


async def _serve(settings: Settings, client: ApiClient, metrics: Metrics, stop: asyncio.Event) -> None:
    pool = ThreadPoolExecutor(CALL_THREADS, thread_name_prefix="calls")
    environment = Environment(api=KubernetesClient(client), settings=settings, pool=pool, metrics=metrics)
    supervisor = Supervisor(environment)
    log.info("serving", namespaces=settings.namespaces or "all", identity=settings.identity)
    try:
        await kopf.operator(
            registry=build_registry(supervisor),
            clusterwide=not settings.namespaces,
            namespaces=settings.namespaces,
            liveness_endpoint=f"http://0.0.0.0:{settings.probe_port}/healthz" if settings.probe_port else None,
            stop_flag=stop,
        )
    finally:
        await supervisor.stop()
        pool.shutdown(wait=False, cancel_futures=True)
    log.info("stopped", sources=supervisor.sources)


async def _lead(settings: Settings, client: ApiClient, metrics: Metrics, stop: asyncio.Event) -> None:
    """Serve only while holding the Lease; a leader that loses it ends its process, to be started anew as a follower."""

    async def lost() -> None:
        log.error("lost the Lease: ending, so that the new leader is alone")
        sys.exit(1)

    lock = LeaseLock(LEASE_NAME, settings.lease_namespace, settings.identity, client)
    election = LeaderElection(
        Config(
            lock,
            lease_duration=LEASE_SECONDS,
            renew_deadline=RENEW_SECONDS,
            retry_period=RETRY_SECONDS,
            onstarted_leading=lambda: _serve(settings, client, metrics, stop),
            onstopped_leading=lost,
        )
    )
    task = asyncio.create_task(election.run())
    await asyncio.wait({task, asyncio.create_task(stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
    if not task.done():
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    else:
        task.result()
