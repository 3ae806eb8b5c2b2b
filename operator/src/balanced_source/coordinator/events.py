"""What can happen to a coordinator.

Every event may come late, twice, or not at all where that is possible outside.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

from balanced_source.api import RebalanceCause, Source
from balanced_source.documents.report import HostReport


@dataclass(frozen=True, slots=True)
class ReportReceived:
    """A reader host's report was seen: its registration, its acknowledgement, its progress."""

    report: HostReport


@dataclass(frozen=True, slots=True)
class HostLost:
    """The pods of a host's incarnation are known to be gone.

    Its splits wait for the next incarnation.
    """

    host: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class HostSilent:
    """An incarnation of a host has not reported for long, while others have.

    It keeps what it has, because it may still read. Until it reports, it gets nothing more. It may
    be told as often as one likes; nothing of it is stored.
    """

    host: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class ParallelismChanged:
    """The user, or an autoscaler, wants another number of readers."""

    parallelism: int


@dataclass(frozen=True, slots=True)
class HostsChanged:
    """The set of hosts that read the source changed. It is never empty. See `membership`."""

    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HostOverdue:
    """A host has not registered in time: the others read its share until it does."""

    host: str


@dataclass(frozen=True, slots=True)
class HostGivenUp:
    """An incarnation of a host has been lost for too long.

    Other hosts read its splits as soon as that is safe.

    It is safe when the host's next incarnation has registered: it replays the micro-batch that its
    Spark checkpoint has begun, and then reports its positions. After that the host has no splits,
    and the coordinator forgets it.

    Attributes:
        host: its name.
        incarnation: that is lost; nothing happens if the host has registered again.
        accepts_duplicates: whether others continue at the newest reported positions at once. What
            the host has read since is delivered twice.
    """

    host: str
    incarnation: int
    accepts_duplicates: bool = False


@dataclass(frozen=True, slots=True)
class SourceChanged:
    """The user changed what is read or how splits are assigned."""

    source: Source[Any, Any]


@dataclass(frozen=True, slots=True)
class RebalanceRequested:
    """Splits may move now, although neither parallelism nor the split set changed."""

    cause: RebalanceCause = RebalanceCause.REQUESTED
    nonce: int | None = None
    """What the user wrote; equal to the last one, nothing happens. None: always."""


@dataclass(frozen=True, slots=True)
class CallCompleted:
    """The runtime executed a call. `result` is a `CallFailure` where it failed."""

    call_id: int
    result: Any


Event: TypeAlias = (
    ReportReceived
    | HostLost
    | HostSilent
    | ParallelismChanged
    | HostsChanged
    | HostOverdue
    | HostGivenUp
    | SourceChanged
    | RebalanceRequested
    | CallCompleted
)
