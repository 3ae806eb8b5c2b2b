"""The contracts of FLIP-27: what a connector implements and what it may rely on."""

from balanced_source.api.connector import (
    CallCodec,
    Caller,
    CallExecutor,
    Connector,
    DriverOnly,
    Identity,
    NamedSecrets,
    SecretReader,
)
from balanced_source.api.context import (
    AsyncCall,
    Boundedness,
    CallFailure,
    CompletionHandler,
    ReaderInfo,
    SplitEnumeratorContext,
    SplitsAssignment,
)
from balanced_source.api.enumerator import Source, SplitEnumerator, SupportsSplitReassignmentOnRecovery
from balanced_source.api.events import SPLIT_REQUEST, SourceEvent
from balanced_source.api.output import MAX_WATERMARK, MIN_WATERMARK, ReaderOutput, SourceOutput, WatermarkOutput
from balanced_source.api.problems import (
    Problem,
    ProblemBoard,
    ProblemChange,
    ProblemKey,
    ProblemListener,
    discovery_problem,
    fatal_problem,
)
from balanced_source.api.reader import InputStatus, SourceReader, SourceReaderContext
from balanced_source.api.rebalancing import RebalanceCause, RebalanceMode, RebalancePolicy
from balanced_source.api.serializer import JsonSerializer, VersionedSerializer
from balanced_source.api.split_reader import (
    RecordEmitter,
    RecordsWithSplitIds,
    SplitReader,
    SplitsAddition,
    SplitsChange,
    SplitsRemoval,
)
from balanced_source.api.splits import IDENTITY, STOP, BoundedSplit, Json, Position, SourceSplit, SplitId, is_other
from balanced_source.api.switching import Measure, SupportsSwitchFrom, SupportsSwitchTo, SwitchPosition

__all__ = [
    "IDENTITY",
    "MAX_WATERMARK",
    "MIN_WATERMARK",
    "SPLIT_REQUEST",
    "STOP",
    "AsyncCall",
    "BoundedSplit",
    "Boundedness",
    "CallCodec",
    "CallExecutor",
    "CallFailure",
    "Caller",
    "CompletionHandler",
    "Connector",
    "DriverOnly",
    "Identity",
    "InputStatus",
    "Json",
    "JsonSerializer",
    "Measure",
    "NamedSecrets",
    "Position",
    "Problem",
    "ProblemBoard",
    "ProblemChange",
    "ProblemKey",
    "ProblemListener",
    "ReaderInfo",
    "ReaderOutput",
    "RebalanceCause",
    "RebalanceMode",
    "RebalancePolicy",
    "RecordEmitter",
    "RecordsWithSplitIds",
    "SecretReader",
    "Source",
    "SourceEvent",
    "SourceOutput",
    "SourceReader",
    "SourceReaderContext",
    "SourceSplit",
    "SplitEnumerator",
    "SplitEnumeratorContext",
    "SplitId",
    "SplitReader",
    "SplitsAddition",
    "SplitsAssignment",
    "SplitsChange",
    "SplitsRemoval",
    "SupportsSplitReassignmentOnRecovery",
    "SupportsSwitchFrom",
    "SupportsSwitchTo",
    "SwitchPosition",
    "VersionedSerializer",
    "WatermarkOutput",
    "discovery_problem",
    "fatal_problem",
    "is_other",
]
