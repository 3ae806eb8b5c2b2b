"""Calls of a source's enumerator that only its driver can make.

Asked in the assignment, answered in the report.
"""

import asyncio
import itertools
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from balanced_source.api import AsyncCall, CallCodec, Problem
from balanced_source.documents.calls import MAX_PAGES, CallAnswer, CallError, WantedCall, joined
from balanced_source.documents.report import HostReport
from balanced_source.errors import (
    DiscoveryError,
    RefusedDiscoveryError,
    TransientDiscoveryError,
    in_short,
)
from balanced_source.names import counted
from balanced_source.reasons import Reason

PATIENCE: Final = 120.0
"""Seconds without an answer after which people are told. The operator continues waiting."""


@dataclass(slots=True)
class _Asked:
    """A call that waits for its answer.

    Attributes:
        call: the call.
        answer: gets its result.
        host: whose driver the pages come from; empty before the first.
        digest: of the result whose pages are collected.
        pages: those that have come, in their order.
        since: when it was asked; monotonic seconds.
        heard: when the newest page came; monotonic seconds.
    """

    call: AsyncCall
    answer: "asyncio.Future[Any]"
    since: float
    host: str = ""
    digest: str = ""
    pages: list[str] = field(default_factory=list)
    heard: float = float("-inf")

    def is_of_another(self, host: str, digest: str) -> bool:
        """Whether a page belongs to another result, while a host still sends pages of this one."""
        if digest == self.digest or host == self.host:
            return False
        return bool(self.pages) and time.monotonic() - self.heard < PATIENCE


class CallsThroughDriver:
    """Calls of one coordinator.

    Another coordinator has others, and never sees the answers to these.

    Args:
        codec: of the source's connector.
        changed: called when `wanted` has changed.
    """

    def __init__(self, codec: CallCodec, changed: Callable[[], None]) -> None:
        self._codec = codec
        self._changed = changed
        # Used once: an answer to the operator before this one stays in the report for a while.
        self._attempt = secrets.token_hex(8)
        self._numbers = itertools.count(1)
        self._asked: dict[str, _Asked] = {}
        self._incarnations: dict[str, int] = {}

    @property
    def wanted(self) -> tuple[WantedCall, ...]:
        """What the assignment asks the driver for."""
        return tuple(
            WantedCall(id=name, call=self._codec.call_to_json(asked.call), page=len(asked.pages))
            for name, asked in self._asked.items()
        )

    def problem_of(self, *, has_driver: bool) -> Problem | None:
        """Return what to tell people when a driver has not answered for a while.

        Args:
            has_driver: whether one runs; without one, none is expected to answer.
        """
        now = time.monotonic()
        if not has_driver:
            for asked in self._asked.values():
                asked.since = now
        late = [asked for asked in self._asked.values() if now - asked.since >= PATIENCE]
        if not late:
            return None
        scopes = ", ".join(sorted({str(getattr(asked.call, "scope", "")) for asked in late}))
        message = (
            f"No driver has answered {counted(len(late), 'call')} about {scopes} within"
            f" {PATIENCE:.0f} s, and only a driver can list these splits. It may still"
            " be at it, which its log says; otherwise check that its image is as new as the"
            " operator's"
        )
        return Problem(reason=Reason.DISCOVERY_FAILED, message=message)

    def pause(self) -> float | None:
        """Return the seconds until the next call is late; None if none will be."""
        now = time.monotonic()
        left = (asked.since + PATIENCE - now for asked in self._asked.values())
        return min((seconds for seconds in left if seconds > 0), default=None)

    async def ask(self, call: AsyncCall) -> Any:
        """Return the result of a call; wait for a driver that makes it.

        Raises:
            DiscoveryError: the driver could not make it, or its answer cannot be read.
        """
        name = f"{self._attempt}-{next(self._numbers)}"
        asked = _Asked(call, asyncio.get_running_loop().create_future(), since=time.monotonic())
        self._asked[name] = asked
        self._changed()
        try:
            return await asked.answer
        finally:
            del self._asked[name]
            self._changed()

    def take(self, report: HostReport) -> None:
        """Take the answers in a report.

        Those of an older driver of the same host, or to a former operator, are ignored.
        """
        if report.incarnation < self._incarnations.get(report.host, 0):
            return
        self._incarnations[report.host] = report.incarnation
        before = self.wanted
        for answer in report.answers:
            asked = self._asked.get(answer.id)
            if asked is not None and not asked.answer.done():
                self._note(asked, answer, report.host)
        if self.wanted != before:
            self._changed()

    def _note(self, asked: _Asked, answer: CallAnswer, host: str) -> None:
        if answer.error is not None:
            asked.answer.set_exception(_error(answer.error))
            return
        if answer.pages > MAX_PAGES:
            asked.answer.set_exception(_unreadable(asked, f"it has {answer.pages} pages"))
            return
        # Hosts that list different things must not interrupt each other for ever.
        if asked.is_of_another(host, answer.digest):
            return
        # A driver that has restarted may list something else: pages of two results must not be
        # joined. A digest names a result, so equal ones may come from several drivers.
        if asked.digest != answer.digest:
            asked.host, asked.digest, asked.pages = host, answer.digest, []
        if answer.page != len(asked.pages):
            return  # seen before, or of a result that is collected again
        asked.pages.append(answer.data)
        asked.heard = time.monotonic()
        if len(asked.pages) >= answer.pages:
            self._finish(asked)

    def _finish(self, asked: _Asked) -> None:
        try:
            asked.answer.set_result(
                self._codec.result_from_json(asked.call, joined(asked.pages, asked.digest))
            )
        except Exception as error:  # noqa: BLE001 - a driver may write anything
            asked.answer.set_exception(_unreadable(asked, in_short(error)))


def _unreadable(asked: _Asked, why: str) -> DiscoveryError:
    scope = str(getattr(asked.call, "scope", ""))
    return TransientDiscoveryError(
        f"{scope}: the driver's answer cannot be read: {why}", scope=scope
    )


def _error(error: CallError) -> DiscoveryError:
    kind = RefusedDiscoveryError if error.is_refused else TransientDiscoveryError
    return kind(error.message, scope=error.scope, reason=error.reason)
