"""Counts drivers that had to be started again although no one asked for a restart.

A row of failures ends when a driver has run for ten minutes, so one that dies every twelve minutes
is never a row. This count has no such limit.

These count: a further driver pod of the same application, after a failure, an eviction or a
deletion of the one before; and the first driver of an application that replaces a failed one.
These do not: the driver of an application that was created because the source is new, its settings
or its `nonce` changed, it was suspended, or it has more hosts. A change of parallelism starts no
driver.

What ran before the first look is the past: an operator that has just started counts none of it. It
counts the next driver of an application that it finds failed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from balanced_source_operator.controller.application_facts import (
    FAILED_ATTEMPT,
    failures_before,
    word_of,
)
from balanced_source_operator.controller.diagnosis import drivers_of
from balanced_source_operator.kube.port import Manifest


@dataclass(frozen=True, slots=True)
class _Seen:
    """States what earlier looks have found of an application.

    Attributes:
        pods: uids of the driver pods with its name.
        has_started: whether one of these was its own. Names are used again, and the pod of the
            former application may still be there.
    """

    pods: frozenset[str]
    has_started: bool


class DriverRestarts:
    """Those of one source."""

    def __init__(self) -> None:
        self._of: dict[str, _Seen] = {}
        self._pods: frozenset[str] = frozenset()

    def look(
        self, applications: Mapping[str, Sequence[Manifest]], pods: Sequence[Manifest]
    ) -> dict[str, int]:
        """Return how many drivers were started again since the last look, by host.

        Args:
            applications: of each host.
            pods: of the source.
        """
        seen, restarts = {}, dict.fromkeys(applications, 0)
        for host, application in _each(applications):
            uid, found = _uid(application), _uids(drivers_of(application, pods))
            if (before := self._of.get(uid)) is None:
                has_started = word_of(application) in FAILED_ATTEMPT or bool(found - self._pods)
                seen[uid] = _Seen(found, has_started=has_started)
                continue
            starts = len(found - before.pods)
            is_asked = not before.has_started and not failures_before(application)
            restarts[host] += max(0, starts - is_asked)
            seen[uid] = _Seen(before.pods | found, has_started=before.has_started or bool(starts))
        self._of, self._pods = seen, _uids(pods)
        return restarts


def _each(applications: Mapping[str, Sequence[Manifest]]) -> Iterator[tuple[str, Manifest]]:
    for host, several in applications.items():
        for application in several:
            yield host, application


def _uids(pods: Sequence[Manifest]) -> frozenset[str]:
    return frozenset(map(_uid, pods))


def _uid(manifest: Manifest) -> str:
    return str(manifest["metadata"].get("uid", ""))
