"""Custom events on their way.

Numbered per direction, kept until acknowledged, bound to one incarnation of a reader.

To readers they stand in the assignment until the host's report has their number; from readers they
stand in the report until the assignment has it. Numbers that were seen are part of the stored
state, so that a restart repeats nothing.
"""

from collections.abc import Collection
from dataclasses import replace

from balanced_source.coordinator.state import CoordinatorState, SplitT
from balanced_source.documents.assignment import NumberedEvent
from balanced_source.documents.report import HostReport


def fresh_events(state: CoordinatorState[SplitT], report: HostReport) -> tuple[NumberedEvent, ...]:
    """Return the events of a report that have not been handled yet, in order."""
    seen = state.hosts[report.host].events_seen
    return tuple(sorted((e for e in report.events if e.number > seen), key=lambda e: e.number))


def with_events_seen(
    state: CoordinatorState[SplitT], host: str, number: int
) -> CoordinatorState[SplitT]:
    """Return the state after the events of a host up to `number` were handled."""
    return replace(
        state, hosts={**state.hosts, host: replace(state.hosts[host], events_seen=number)}
    )


def acknowledged(state: CoordinatorState[SplitT], report: HostReport) -> CoordinatorState[SplitT]:
    """Return the state without the events that a host has delivered to its readers."""
    subtasks = frozenset(state.subtasks_of(report.host))
    # Numbers are counted over all hosts, and each one acknowledges its own readers' events.
    rest = tuple(
        e for e in state.outbox if e.number > report.events_seen or e.subtask_id not in subtasks
    )
    return state if len(rest) == len(state.outbox) else replace(state, outbox=rest)


def dropped(state: CoordinatorState[SplitT], subtasks: Collection[int]) -> CoordinatorState[SplitT]:
    """Return the state without events for removed readers."""
    rest = tuple(e for e in state.outbox if e.subtask_id not in subtasks)
    return state if len(rest) == len(state.outbox) else replace(state, outbox=rest)
