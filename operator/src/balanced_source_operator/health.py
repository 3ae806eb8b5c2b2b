"""What the probes ask.

/healthz says that the event loop lives, /readyz that the operator can do its work.

Ready means serving, or standing by for the leader, with all rights that serving needs. A process
that lives but may not even list the sources must not let a rollout succeed.
"""

import asyncio
import enum
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import structlog
from aiohttp import web

from balanced_source.names import first_of
from balanced_source_operator.kube.port import KubernetesError

SOON: Final = 10.0
"""Seconds until rights are checked again while some are missing."""

LATER: Final = 300.0
"""Seconds until rights are checked again when none is missing."""

_SHOWN: Final = 5
"""Rights that the log names one by one."""

log = structlog.get_logger(__name__)


class Role(enum.StrEnum):
    """What the process does."""

    STARTING = "starting"
    STANDING_BY = "standing by"
    SERVING = "serving"


class Health:
    """State of the process, as the probes see it.

    Attributes:
        role: what the process does.
    """

    def __init__(self) -> None:
        self.role = Role.STARTING
        self._rights = "the rights of the service account were not checked yet"
        self._definition = ""

    @property
    def lacks_rights(self) -> bool:
        """Whether rights are missing, or were not looked at yet."""
        return bool(self._rights)

    @property
    def problem(self) -> str:
        """Why the process cannot work; empty if it can."""
        return " ".join(filter(None, (self._definition, self._rights)))

    @property
    def is_ready(self) -> bool:
        """Whether the process serves or stands by, and has the rights to serve."""
        return self.role is not Role.STARTING and not self.problem

    def note_rights(self, missing: Sequence[str]) -> None:
        """Take over which rights are missing, and log it when that changes."""
        before, self._rights = self._rights, _sentence(missing)
        if self._rights != before and missing:
            log.error("not ready", problem=self._rights)
        elif self._rights != before:
            log.info("the service account has all rights that the operator needs")

    def note_definition(self, problem: str) -> None:
        """Take over why the kind BalancedSource cannot be followed, and log it when that changes.

        `problem` is empty if it can.
        """
        before, self._definition = self._definition, problem
        if self._definition != before and problem:
            log.error("not ready", problem=problem)
        elif self._definition != before:
            log.info("the kind BalancedSource is served now")


def _sentence(missing: Sequence[str]) -> str:
    if not missing:
        return ""
    return (
        f"The service account may not {first_of(missing, _SHOWN)}. Install the roles of the"
        " Helm chart (rbac.create), or bind the same rules to the account; the operator checks"
        " again automatically"
    )


async def watch_rights(health: Health, missing: Callable[[], Awaitable[Sequence[str]]]) -> None:
    """Look at the rights again and again. An API server that does not answer changes nothing.

    Args:
        health: is told.
        missing: returns the rights that the service account lacks, in words.
    """
    while True:
        try:
            health.note_rights(await missing())
        # An API server that restarts says nothing about rights: readiness stays as it was.
        except KubernetesError as error:
            log.warning("rights could not be checked", error=str(error))
        await asyncio.sleep(SOON if health.lacks_rights else LATER)


@asynccontextmanager
async def answering_probes(health: Health, port: int) -> AsyncIterator[None]:
    """Answer probes as long as this lasts. They come every few seconds and are not logged."""

    async def alive(_: web.Request) -> web.Response:
        return web.json_response({"role": health.role.value})

    async def ready(_: web.Request) -> web.Response:
        answer = {"role": health.role.value, "problem": health.problem}
        return web.json_response(answer, status=200 if health.is_ready else 503)

    application = web.Application()
    application.router.add_get("/healthz", alive)
    application.router.add_get("/readyz", ready)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    if port:
        # The kubelet asks from outside the pod
        await web.TCPSite(runner, "0.0.0.0", port).start()  # noqa: S104
    try:
        yield
    finally:
        await runner.cleanup()
