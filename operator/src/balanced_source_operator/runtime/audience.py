"""Who looks at the sources while they are served: the status page, if it is on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from balanced_source.api import Source
from balanced_source.coordinator import Checkpoint
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source_operator.resources.identity import Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceMoment:
    """A source at one moment. It refers to values that exist anyway, so that a look costs nothing.

    Attributes:
        desired: `spec.parallelism`; None if the spec is invalid.
        status: as written; empty in local mode.
        assignment: the published one; None before the first.
        reports: newest report of each host that has reported.
        silent: hosts that have not reported for so long that their lag is unknown.
        source: what is read; None while the spec was never valid.
        checkpoint: returns the enumerator's state, for plans; None while there is none.
        hosts_for: returns the names of the hosts that a number of readers needs; None where there
            is one host.
        notes: problems that no condition says, as sentences.
    """

    desired: int | None = None
    status: Mapping[str, Any] = field(default_factory=dict)
    assignment: Assignment | None = None
    reports: Mapping[str, HostReport] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
    source: Source[Any, Any] | None = None
    checkpoint: Callable[[], Checkpoint[Any, Any]] | None = None
    hosts_for: Callable[[int], tuple[str, ...]] | None = None
    notes: tuple[str, ...] = ()


Look = Callable[[], SourceMoment]
"""Returns what there is of a source now."""


class Audience(Protocol):
    """Called on the operator's event loop. It must return at once, and never raise."""

    def turned(self, source: Identity, look: Look) -> None:
        """A source had a turn; `look` may be called until the source is forgotten."""
        ...

    def forget(self, source: Identity) -> None:
        """A source is served no more."""
        ...


class NoAudience:
    """No one looks."""

    def turned(self, source: Identity, look: Look) -> None:
        """See `Audience`."""

    def forget(self, source: Identity) -> None:
        """See `Audience`."""
