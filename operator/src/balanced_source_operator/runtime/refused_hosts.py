"""Hosts for which the API server refuses objects.

Each is tried again after a pause of its own; the others continue.
"""

import time
from dataclasses import replace
from typing import Final, NamedTuple

from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.refusals import refusal_problem
from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.spec import BalancedSourceSpec

_FIRST: Final = 1.0
_LONGEST: Final = 30.0
"""Seconds between two tries: after the first refusal, and at most."""


class _Pause(NamedTuple):
    spec: BalancedSourceSpec
    decision: Decision
    seconds: float
    until: float


class RefusedHosts:
    """Of one source with several hosts. A change of the spec ends all pauses."""

    def __init__(self) -> None:
        self._pauses: dict[str, _Pause] = {}

    def __bool__(self) -> bool:
        return bool(self._pauses)

    def paused(self, host: str, spec: BalancedSourceSpec) -> Decision | None:
        """Return what was decided about a host that is not tried again yet; None for all others."""
        pause, now = self._pauses.get(host), time.monotonic()
        if pause is None or pause.until <= now or pause.spec != spec:
            return None
        return replace(pause.decision, look_again=pause.until - now)

    def note(
        self, host: str, spec: BalancedSourceSpec, error: RefusedError, *, seen: Decision
    ) -> Decision:
        """Note a refusal, and return the decision about the host.

        Args:
            host: whose object was refused.
            spec: in effect.
            error: the answer.
            seen: what its application does.
        """
        before = self._pauses.get(host)
        seconds = (
            min(2 * before.seconds, _LONGEST)
            if before is not None and before.spec == spec
            else _FIRST
        )
        problem = refusal_problem(f"serve host {host}", error, scope=host)
        decision = replace(seen, reason=problem.reason, message=problem.message, look_again=seconds)
        self._pauses[host] = _Pause(spec, decision, seconds, time.monotonic() + seconds)
        return decision

    def clear(self, host: str) -> None:
        """Note that nothing was refused for a host, or that it is gone."""
        self._pauses.pop(host, None)
