"""Events on the resource: on transitions only, never the same twice in a row."""

import time
from datetime import UTC, datetime
from typing import Final
from uuid import uuid4

import structlog

from balanced_source_operator.kube.port import KubernetesApi, KubernetesError
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, EVENT, MANAGER

REPEAT_AFTER: Final = 600.0
"""Seconds after which the same event is worth saying again."""

log = structlog.get_logger(__name__)


class EventRecorder:
    """Events of one source. An event that cannot be posted is only logged: nothing depends on it."""

    def __init__(self, api: KubernetesApi, source: Identity, *, reporter: str) -> None:
        self._api = api
        self._source = source
        self._reporter = reporter
        self._said: dict[str, tuple[str, float]] = {}

    async def post(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Say it, unless it was just said."""
        before, at = self._said.get(reason, ("", 0.0))
        if before == message and time.monotonic() - at < REPEAT_AFTER:
            return
        self._said[reason] = (message, time.monotonic())
        log.info(message, reason=reason, source=self._source.name, namespace=self._source.namespace)
        try:
            await self._api.create(EVENT, self._manifest(reason, message, "Warning" if warning else "Normal"))
        except KubernetesError as error:
            log.warning("event not posted", reason=reason, error=str(error))

    def _manifest(self, reason: str, message: str, kind: str) -> dict[str, object]:
        source, stamp = self._source, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {"namespace": source.namespace, "name": f"{source.name}.{uuid4().hex[:16]}"},
            "involvedObject": {
                "apiVersion": BALANCED_SOURCE.api_version,
                "kind": BALANCED_SOURCE.kind,
                "namespace": source.namespace,
                "name": source.name,
                "uid": source.uid,
            },
            "reason": reason,
            "message": message[:1024],
            "type": kind,
            "count": 1,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "source": {"component": MANAGER},
            "reportingComponent": MANAGER,
            "reportingInstance": self._reporter,
        }
