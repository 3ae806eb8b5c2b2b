"""Questions to a source that have not come back.

A volume whose server is gone may keep who lists it waiting without an end, and without an error.
"""

import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from balanced_source.api import AsyncCall, Problem, ProblemKey, discovery_problem
from balanced_source.errors import TransientDiscoveryError

PATIENCE: Final = 120.0
"""Seconds without an answer after which people are told."""


class AskedSince(NamedTuple):
    """A question that is under way.

    Attributes:
        scope: that was asked.
        since: when; monotonic seconds.
    """

    scope: str
    since: float


def asked_now(call: AsyncCall) -> AskedSince:
    """Return the question that a call is."""
    return AskedSince(str(getattr(call, "scope", "")), time.monotonic())


def unanswered(asked: Iterable[AskedSince]) -> dict[ProblemKey, Problem]:
    """Return what to tell of questions that have waited for long. Waiting continues.

    The message stays the same while it lasts.
    """
    now = time.monotonic()
    scopes = {scope for scope, since in asked if now - since >= PATIENCE}
    return {("discovery", scope): _problem(scope) for scope in scopes}


def _problem(scope: str) -> Problem:
    error = TransientDiscoveryError(
        f"{scope} has not answered for {PATIENCE:.0f} s. It may still be listed, if there is much"
        " of it; otherwise check the server or the volume where it is",
        scope=scope,
    )
    return discovery_problem(error, scope=scope)
