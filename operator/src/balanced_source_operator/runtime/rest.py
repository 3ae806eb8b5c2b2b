"""How the task of a source waits for its next turn, and what ends it."""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import Any, Final

from balanced_source.coordinator import HostRole
from balanced_source.reasons import Reason
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.liveness import Pulses

_AT_REST: Final = 5
"""Times the interval of the checks for a source about which there is nothing to say or to do.

With a thousand sources, checks that find nothing would cost as much as everything else together.
"""

_UNEVENTFUL: Final = {Reason.READING, Reason.STABLE, Reason.AS_EXPECTED}
_DECIDED: Final = {Reason.WITHIN_TARGET}
"""Of the autoscaler, where there is one."""

_READING_HOST: Final = (HostRole.MEMBER.value, ApplicationState.RUNNING.value)


def is_at_rest(status: Mapping[str, Any]) -> bool:
    """Return whether a status says that what is assigned is read, and nothing else.

    Args:
        status: as it was written last.
    """
    reasons = {condition["reason"] for condition in status.get("conditions", ())}
    # Conditions are about the hosts with readers. One that joins, or tries new settings, has none.
    hosts = {(host.get("role"), host.get("state")) for host in status.get("hosts", ())}
    return reasons - _DECIDED == _UNEVENTFUL and hosts <= {_READING_HOST}


def until_check(interval: float, status: Mapping[str, Any]) -> float:
    """Return the seconds until a source is checked if nothing happens.

    Args:
        interval: seconds, for a source that waits for something or has a problem.
        status: as it was written last.
    """
    return interval * _AT_REST if is_at_rest(status) else interval


async def rest(
    pause: float, awaited: asyncio.Event, pulses: Pulses, *, silent: frozenset[str]
) -> None:
    """Wait until something happens, a driver falls silent, or time is up.

    A driver that has reported meanwhile costs no turn: with thousands of sources, turns are what
    the operator spends its time on.

    Args:
        pause: seconds, at most.
        awaited: is set when something happens.
        pulses: of the drivers.
        silent: hosts whose drivers were silent when the last turn began. One that has fallen silent
            since has not been noticed, however long the turn and those of other sources took.
    """
    await asyncio.sleep(0)  # other sources get their turn, too
    due = time.monotonic() + pause
    while (now := time.monotonic()) < due and pulses.silent(now=now) == silent:
        left = pulses.pause(now=now)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(due - now if left is None else min(left, due - now)):
                await awaited.wait()
                return


def unless_ended(error: BaseException) -> BaseException:
    """Return what was raised in a task; raise it again if it is to end the task.

    A connector's code may raise what asyncio cancels tasks with, and nothing would serve its source
    any more.
    """
    task = asyncio.current_task()
    is_cancelled = task is not None and task.cancelling() > 0
    if isinstance(error, GeneratorExit) or (
        isinstance(error, asyncio.CancelledError) and is_cancelled
    ):
        raise error
    return error
