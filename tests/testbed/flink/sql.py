"""Statements by the SQL gateway, and what became of their jobs."""

from types import TracebackType
from typing import Any, Self

import httpx2

from testbed.errors import TestbedError
from testbed.waiting import wait_until

_DONE = frozenset({"FINISHED", "ERROR", "CANCELED", "TIMEOUT", "CLOSED"})
_ENDED = frozenset({"FINISHED", "FAILED", "CANCELED"})


class FlinkError(TestbedError):
    """A statement or a job failed."""


class SqlSession:
    """One session of the gateway; tables made in it are its own. A context manager.

    Args:
        gateway: address of the SQL gateway.
        jobs: address of the job manager's HTTP interface.
        interval: seconds between two questions.
    """

    def __init__(self, gateway: str, jobs: str, *, interval: float = 0.02) -> None:
        self._http = httpx2.Client(trust_env=False, timeout=60)
        self._jobs = jobs
        self._interval = interval
        self._session = (
            f"{gateway}/sessions/{self._post(f'{gateway}/sessions', {})['sessionHandle']}"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.delete(self._session)
        self._http.close()

    def execute(self, statement: str, *, timeout: float = 120.0) -> dict[str, Any]:
        """Run a statement and return the gateway's answer; a job that it starts continues.

        Raises:
            FlinkError: it was refused; the message has the gateway's.
        """
        handle = self._post(f"{self._session}/statements", {"statement": statement})[
            "operationHandle"
        ]
        operation = f"{self._session}/operations/{handle}"

        def done() -> str | None:
            status = str(self._get(f"{operation}/status")["status"])
            return status if status in _DONE else None

        wait_until(done, timeout, f"Flink to run {statement[:60]!r}", interval=self._interval)
        return self._get(f"{operation}/result/0")

    def await_job(self, job: str, *, timeout: float = 600.0) -> dict[str, Any]:
        """What the job manager tells of a job when it has finished.

        Raises:
            FlinkError: it failed.
        """

        def ended() -> dict[str, Any] | None:
            told = self._get(f"{self._jobs}/jobs/{job}")
            return told if told["state"] in _ENDED else None

        told = wait_until(ended, timeout, f"Flink's job {job}", interval=self._interval)
        if told is None or told["state"] != "FINISHED":
            reason = self._get(f"{self._jobs}/jobs/{job}/exceptions")
            raise FlinkError(
                f"Flink's job {job} ended as {told and told['state']}: {str(reason)[:2000]}"
            )
        return told

    def _post(self, url: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._read(self._http.post(url, json=body))

    def _get(self, url: str) -> dict[str, Any]:
        return self._read(self._http.get(url))

    @staticmethod
    def _read(response: httpx2.Response) -> dict[str, Any]:
        if response.is_error:
            raise FlinkError(
                f"{response.url} answered {response.status_code}: {response.text[:2000]}"
            )
        return dict(response.json())
