"""Where events about sources enter: kopf's handlers, as thin as can be.

Those of their objects come from informers.

Only raw events are used: nothing is written to any object by the framework (no finalizer, no
annotation), which is what SparkApplications need while they are being submitted, and what lets a
BalancedSource be deleted while no operator runs.
"""

import asyncio
import dataclasses
import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import kopf
from kopf import OperatorRegistry
from kopf._cogs.structs.references import Insights

from balanced_source_operator.resources.kinds import BALANCED_SOURCE
from balanced_source_operator.settings import Settings
from balanced_source_operator.spec import GROUP

_WATCHER: Final = "watcher for "
"""How kopf begins the name of a task that watches a resource."""

OnSource: TypeAlias = Callable[[str | None, Mapping[str, Any]], None]
"""Gets the event and the BalancedSource; the event of one that was listed is None."""


class Backoffs:
    """Seconds between two attempts of a request that failed: there is no last one."""

    def __iter__(self) -> Iterator[float]:
        """Return the pauses from the first failure on."""
        return itertools.chain((1, 1, 2, 3, 5, 8), itertools.repeat(10))


class KopfFollower:
    """Tells of all sources by kopf.

    Args:
        settings: of the operator: which namespaces.
        tell: gets the sources.
    """

    def __init__(self, settings: Settings, tell: OnSource) -> None:
        self._settings = settings
        self._tell = tell
        # The only place that says what kopf has found; the type is private.
        self._insights = Insights()
        self._watched: set[str] = set()

    def follows(self) -> bool:
        """Return whether kopf has found the BalancedSources, and watches them where it did before.

        kopf gives up a watch that is refused, or whose resource is gone, and starts none again.
        """
        watchers = self._watchers()
        # Only names that were seen count: another version of kopf may name its tasks otherwise.
        is_watching = watchers >= self._watched
        self._watched |= watchers
        return is_watching and any(
            (known.group, known.plural) == (BALANCED_SOURCE.group, BALANCED_SOURCE.plural)
            for known in self._insights.watched_resources
        )

    @staticmethod
    def _watchers() -> set[str]:
        """Names of kopf's tasks that watch BalancedSources now."""
        names = {task.get_name() for task in asyncio.all_tasks() if not task.done()}
        return {n for n in names if n.startswith(f"{_WATCHER}{BALANCED_SOURCE.plural}.")}

    async def run(self, leave: asyncio.Event) -> None:
        """Tell of all sources until told to leave."""
        settings, namespaces = kopf.OperatorSettings(), self._settings.namespaces
        # Roles in namespaces give no right to watch definitions and namespaces.
        settings.scanning.disabled = bool(namespaces)
        await kopf.operator(
            registry=build_registry(self._tell),
            settings=settings,
            insights=self._insights,
            clusterwide=not namespaces,
            namespaces=namespaces,
            # Without it kopf asks for the user's name, and a UID that a cluster assigns has none.
            # The type is private.
            identity=self._settings.identity,  # type: ignore[arg-type]
            stop_flag=leave,
        )


def build_registry(tell: OnSource) -> OperatorRegistry:
    """Handlers that tell of sources."""
    registry = OperatorRegistry()

    @kopf.on.startup(registry=registry)
    async def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        apply_settings(settings)

    @kopf.on.login(registry=registry, retries=3)
    async def login(**kwargs: Any) -> kopf.ConnectionInfo | None:
        """Read again each time, so that rotated tokens are picked up."""
        return kopf.login_with_kubeconfig(**kwargs) or _by_address(
            kopf.login_with_service_account(**kwargs), os.environ
        )

    @kopf.on.event(
        BALANCED_SOURCE.group, BALANCED_SOURCE.version, BALANCED_SOURCE.plural, registry=registry
    )
    async def on_source(event: kopf.RawEvent, **_: Any) -> None:
        tell(event["type"], event["object"])

    return registry


def apply_settings(settings: kopf.OperatorSettings) -> None:
    """Own time limits, so that a silent connection costs seconds.

    Nothing of ours needs kopf's peering or storage.
    """
    # Without limits, a connection that died silently would deliver nothing forever.
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 330
    settings.watching.connect_timeout = 30
    settings.watching.reconnect_backoff = 1.0
    settings.networking.request_timeout = 30
    # By default kopf ends after a minute of refusals or silence, and may hang as it does.
    settings.networking.error_backoffs = Backoffs()
    # Two operators of kopf's peering that are equal stop both; the Lease decides here.
    settings.peering.standalone = True
    # kopf would post its own log lines as events of the source.
    settings.posting.enabled = False
    settings.persistence.finalizer = f"{GROUP}/finalizer"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP)
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=GROUP)


def _by_address(
    login: kopf.ConnectionInfo | None, environment: Mapping[str, str]
) -> kopf.ConnectionInfo | None:
    """The API server by the address that every pod is given, as all other clients do.

    kopf's name for it needs DNS.
    """
    host, port = (
        environment.get("KUBERNETES_SERVICE_HOST"),
        environment.get("KUBERNETES_SERVICE_PORT", "443"),
    )
    if login is None or not host:
        return login
    return dataclasses.replace(
        login, server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    )
