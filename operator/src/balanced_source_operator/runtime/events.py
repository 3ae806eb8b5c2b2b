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
"""Seconds after which the same event is posted again."""

RETRY_AFTER: Final = 30.0
"""Seconds after which an event that could not be posted is tried again."""

log = structlog.get_logger(__name__)


class EventRecorder:
    """Events of one source.

    An event that cannot be posted is only logged: nothing depends on it.
    """

    def __init__(self, api: KubernetesApi, source: Identity, *, reporter: str) -> None:
        self._api = api
        self._source = source
        self._reporter = reporter
        self._posted: dict[tuple[str, str], tuple[bool, float]] = {}

    async def post(self, reason: str, message: str, *, warning: bool = False) -> bool:
        """Post an event and log it, unless the same one was posted recently.

        Returns whether it is posted.
        """
        key, now = (reason, message), time.monotonic()
        # An operator that runs for months must not keep each message forever.
        self._posted = {
            k: (done, until) for k, (done, until) in self._posted.items() if now < until
        }
        if key in self._posted:
            return self._posted[key][0]
        write = log.warning if warning else log.info
        write(message, reason=reason, source=self._source.name, namespace=self._source.namespace)
        try:
            await self._api.create(
                EVENT, self._manifest(reason, message, "Warning" if warning else "Normal")
            )
        except KubernetesError as error:
            log.warning("event not posted", reason=reason, error=str(error))
            self._posted[key] = (False, now + RETRY_AFTER)
            return False
        self._posted[key] = (True, now + REPEAT_AFTER)
        return True

    def _manifest(self, reason: str, message: str, kind: str) -> dict[str, object]:
        source, stamp = self._source, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {
                "namespace": source.namespace,
                "name": f"{source.name}.{uuid4().hex[:16]}",
            },
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
