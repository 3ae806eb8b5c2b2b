"""Splits on their way out of a host.

Revoke, the host lets go and reports its final position, assign elsewhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from balanced_source.api import Position
from balanced_source.coordinator.finished import is_at_end
from balanced_source.coordinator.state import (
    CoordinatorState,
    Revocation,
    SplitT,
    believed_position,
    reported_position,
)
from balanced_source.documents.report import HostReport


def let_go(
    state: CoordinatorState[SplitT],
    reports: Mapping[str, HostReport],
    *,
    is_done: Callable[[Revocation[SplitT]], bool],
) -> tuple[CoordinatorState[SplitT], list[SplitT]]:
    """Return the state after hosts have released splits, at the final positions that they report.

    Where another host's reader is the owner already, the split is assigned to it from now on.

    Args:
        state: before.
        reports: of the hosts that may have let go.
        is_done: whether a host cannot read the split any more.

    Returns:
        The state, and those of the splits that no one owns, sorted.
    """
    done = {s: r for s, r in state.revoking.items() if r.host in reports and is_done(r)}
    # Each acknowledgement asks, and seldom is anything on its way.
    if not done:
        return state, []
    final = {s: r.split.at(_final_position(state, reports[r.host], r)) for s, r in done.items()}
    moving = {s: state.owners[s] for s in done if s in state.owners}
    after = replace(
        state,
        revoking={s: r for s, r in state.revoking.items() if s not in done},
        splits={**state.splits, **{s: final[s] for s in moving}},
        # For the next owner the split is new: it is covered when that host has adopted it.
        tracker=state.tracker.forget(done).record(moving),
        # The final position is known now, so nothing that a host retains can be newer.
        reclaimed=state.reclaimed - done.keys(),
    )
    # Sorted, so that the outcome does not depend on the order of a mapping.
    return after, [final[s] for s in sorted(done) if s not in moving]


def has_read(
    state: CoordinatorState[SplitT], report: HostReport, revocation: Revocation[SplitT]
) -> bool:
    """Return whether a host has read a split on its way out of it to the split's end.

    Then nothing is left to let go of. The query may end with that micro-batch, and never adopt an
    epoch without the split.
    """
    split = revocation.split.at(_final_position(state, report, revocation))
    return is_at_end(split, report)


def with_reported_positions(
    state: CoordinatorState[SplitT], reports: Mapping[str, HostReport]
) -> CoordinatorState[SplitT]:
    """Return the state with revoked splits at the positions that restarted hosts report.

    A registration does not release them. The Spark checkpoint of the host still names the splits,
    so a former driver that was cut off could log one more micro-batch with them. When the host
    acknowledges an epoch without the splits, that epoch is in its offset log, and the log has taken
    the entry that the former driver would need.
    """
    found = {
        s: replace(r, split=r.split.at(_final_position(state, reports[r.host], r)))
        for s, r in state.revoking.items()
        if r.host in reports
    }
    return replace(state, revoking={**state.revoking, **found}) if found else state


def _final_position(
    state: CoordinatorState[SplitT], report: HostReport, revocation: Revocation[SplitT]
) -> Position:
    """Where the host stopped.

    One that never adopted the split has nothing to say but of former times.
    """
    split = revocation.split
    since = state.tracker.epoch_of(split.split_id)
    # It adopted the split, so it knows: what it reads counts as it says.
    if since is None or 0 < since <= report.epoch:
        return reported_position(report, split)
    is_reclaimed = split.split_id in state.reclaimed
    return believed_position(report, split, since=since, is_reclaimed=is_reclaimed)
