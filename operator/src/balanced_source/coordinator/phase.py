"""In which phase of its life a source is; see `balanced_source.lifecycles.SOURCE`."""

from balanced_source.coordinator.state import CoordinatorState, HostRole, SplitT
from balanced_source.lifecycles import HostPhase, SourcePhase


def source_phase(state: CoordinatorState[SplitT], *, is_finished: bool = False) -> SourcePhase:
    """Return the phase of the source. `is_finished` is the enumerator's answer."""
    if is_finished:
        return SourcePhase.FINISHED
    # Epoch 0 may be published too, for calls that a driver makes; it assigns nothing.
    if state.epoch == 0:
        return SourcePhase.DISCOVERING
    if not any(host.phase is HostPhase.ACTIVE for host in state.hosts.values()):
        return SourcePhase.WAITING
    return SourcePhase.READING if acknowledged_epoch(state) >= state.epoch else SourcePhase.ADOPTING


def acknowledged_epoch(state: CoordinatorState[SplitT]) -> int:
    """Return the newest epoch that all hosts have adopted durably; 0 if there is none.

    Hosts that have not registered do not count.
    """
    # A host that joins has no readers yet, and may never come.
    hosts = [host for host in state.hosts.values() if host.role is not HostRole.JOINING]
    return min((host.acknowledged_epoch for host in hosts), default=0)


def complete_epoch(state: CoordinatorState[SplitT], name: str, acknowledged: int) -> int:
    """Newest epoch of all active hosts, if host `name`, one of them, holds `acknowledged`."""
    active = [
        # As if it held that one: asked before and after, it tells whether another epoch is
        # complete.
        acknowledged if other == name else host.acknowledged_epoch
        for other, host in state.hosts.items()
        if host.phase is HostPhase.ACTIVE
    ]
    return min(active)
