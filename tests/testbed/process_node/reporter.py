"""Brings the status of one pod to the API server, through outages."""

import asyncio
import logging
from http import HTTPStatus

from testbed.process_node.api import UNAVAILABLE, Api, ApiError
from testbed.process_node.fields import PodFacts
from testbed.process_node.status import PodStatus

_GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY)
_RETRY_SECONDS = 0.3
_log = logging.getLogger(__name__)


def pod_path(pod: PodFacts) -> str:
    """The pod's address in the API."""
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


class StatusReporter:
    """Reports the latest status; changes that come while one is under way go together.

    Args:
        api: the connection.
        pod: whose status.
        status: the status, changed by others.
    """

    def __init__(self, api: Api, pod: PodFacts, status: PodStatus) -> None:
        self._api = api
        self._pod = pod
        self._status = status
        self._changed = asyncio.Event()
        self._reported = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    def changed(self) -> None:
        """The status has changed."""
        self._reported.clear()
        self._changed.set()

    async def flush(self) -> None:
        """Report the status and wait until the server has it, or has no such pod any more."""
        self.changed()
        await self._reported.wait()

    def close(self) -> None:
        """Report nothing more."""
        self._task.cancel()

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._report()
            if not self._changed.is_set():
                self._reported.set()

    async def _report(self) -> None:
        # the uid: a new pod of the same name must not get the status of the old one
        while True:
            body = {"metadata": {"uid": self._pod.uid}, "status": self._status.document()}
            try:
                await self._api.patch(f"{pod_path(self._pod)}/status", body)
            except ApiError as error:
                if error.status in _GONE:
                    _log.info("status of %s: %s", self._pod.name, error)
                    return
            except UNAVAILABLE:
                pass
            else:
                return
            await asyncio.sleep(_RETRY_SECONDS)
