"""Announces each problem once.

A Warning event and a log line when it appears, a log line when it is resolved.
"""

from collections.abc import Sequence
from typing import TypeAlias

import structlog

from balanced_source.api import Problem
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.runtime.events import EventRecorder

log = structlog.get_logger(__name__)

_Key: TypeAlias = tuple[str, str]


class Announcer:
    """Of one source. A problem whose message changes is still the same problem."""

    def __init__(self, source: Identity, events: EventRecorder) -> None:
        self._events = events
        self._announced: dict[_Key, Problem] = {}
        self._log = log.bind(source=source.name, namespace=source.namespace)

    async def announce(self, problems: Sequence[Problem]) -> None:
        """Announce the changes since the last call.

        An event that cannot be posted is tried again next time.
        """
        # Reversed: of several problems with one key the first is announced.
        current = {(problem.reason, problem.scope): problem for problem in reversed(problems)}
        for key in self._announced.keys() - current.keys():
            gone = self._announced.pop(key)
            self._log.info(
                "problem resolved", reason=gone.reason, scope=gone.scope, message=gone.message
            )
        for key, problem in current.items():
            if key not in self._announced and await self._events.post(
                problem.reason, problem.message, warning=True
            ):
                self._announced[key] = problem
