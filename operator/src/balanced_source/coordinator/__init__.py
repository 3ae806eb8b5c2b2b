"""The source coordinator: drives one enumerator, tracks reader hosts, decides epochs. Sans-IO."""

from balanced_source.coordinator.coordinator import SourceCoordinator
from balanced_source.coordinator.effects import (
    Effect,
    EffectPorts,
    ExecuteCall,
    PersistState,
    PublishAssignment,
    ReportFact,
    perform,
)
from balanced_source.coordinator.events import (
    CallCompleted,
    Event,
    HostGivenUp,
    HostLost,
    HostOverdue,
    HostsChanged,
    HostSilent,
    ParallelismChanged,
    RebalanceRequested,
    ReportReceived,
    SourceChanged,
)
from balanced_source.coordinator.state import Checkpoint, CoordinatorState, HostRole, HostState
from balanced_source.coordinator.tracker import SplitAssignmentTracker
from balanced_source.lifecycles import HostPhase

__all__ = [
    "CallCompleted",
    "Checkpoint",
    "CoordinatorState",
    "Effect",
    "EffectPorts",
    "Event",
    "ExecuteCall",
    "HostGivenUp",
    "HostLost",
    "HostOverdue",
    "HostPhase",
    "HostRole",
    "HostSilent",
    "HostState",
    "HostsChanged",
    "ParallelismChanged",
    "PersistState",
    "PublishAssignment",
    "RebalanceRequested",
    "ReportFact",
    "ReportReceived",
    "SourceChanged",
    "SourceCoordinator",
    "SplitAssignmentTracker",
    "perform",
]
