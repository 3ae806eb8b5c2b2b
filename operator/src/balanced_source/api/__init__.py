"""The contracts of FLIP-27: what a connector implements and what it may rely on."""

from balanced_source.api.enumerator import (
    AsyncCall,
    Boundedness,
    CallFailure,
    CompletionHandler,
    ReaderInfo,
    Source,
    SplitEnumerator,
    SplitEnumeratorContext,
    SplitsAssignment,
    SupportsSplitReassignmentOnRecovery,
)
from balanced_source.api.events import SourceEvent
from balanced_source.api.rebalancing import RebalanceCause, RebalanceMode, RebalancePolicy
from balanced_source.api.serializer import VersionedSerializer
from balanced_source.api.splits import STOP, BoundedSplit, Json, Position, SourceSplit, SplitId

__all__ = [
    "STOP",
    "AsyncCall",
    "BoundedSplit",
    "Boundedness",
    "CallFailure",
    "CompletionHandler",
    "Json",
    "Position",
    "ReaderInfo",
    "RebalanceCause",
    "RebalanceMode",
    "RebalancePolicy",
    "Source",
    "SourceEvent",
    "SourceSplit",
    "SplitEnumerator",
    "SplitEnumeratorContext",
    "SplitId",
    "SplitsAssignment",
    "SupportsSplitReassignmentOnRecovery",
    "VersionedSerializer",
]
