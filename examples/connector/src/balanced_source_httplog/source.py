"""What is read, as values: no I/O here."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Self

from balanced_source.api import (
    Boundedness,
    Position,
    RebalancePolicy,
    SourceSplit,
    SplitId,
    SupportsSplitReassignmentOnRecovery,
)
from balanced_source.assigners import RoundRobinAssigner, SplitAssigner
from balanced_source.connectors.discovery import Discover, DiscoveringSource, Initialize

KIND: Final = "httplog"
SCOPE: Final = "server"
"""The only part of the source that is discovered; the first member of each split's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """How the API is reached.

    Attributes:
        url: without a slash at its end.
        secret: name of the Secret whose key `token` is sent; None: the API is asked without one.
    """

    url: str
    secret: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON value for readers; nothing secret."""
        return {"url": self.url, **({"secret": self.secret} if self.secret else {})}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`."""
        return cls(url=data["url"], secret=data.get("secret"))


class Entry(NamedTuple):
    """An entry of a log."""

    log: str
    number: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSplit(SourceSplit):
    """A log, from entry `number` on."""

    name: str
    number: int = 0

    @property
    def split_id(self) -> SplitId:
        return (SCOPE, self.name)

    @property
    def position(self) -> Position:
        return self.number

    def at(self, position: Position) -> Self:
        return replace(self, number=int(position or 0))

    def attributes(self) -> Mapping[str, Any]:
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLogs(Discover):
    """List the logs of the server."""

    scope: str
    round: int
    server: Server


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstEntries(Initialize):
    """Say where reading of new logs starts."""

    scope: str
    split_ids: tuple[SplitId, ...]
    server: Server


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLogSource(DiscoveringSource[LogSplit], SupportsSplitReassignmentOnRecovery):
    """All logs of one server, from their first entries on.

    A value: equal settings make equal sources.
    """

    server: Server
    assigner: SplitAssigner = field(default_factory=RoundRobinAssigner)
    rebalance_policy: RebalancePolicy = field(default_factory=RebalancePolicy)
    discovery_interval: float | None = 30.0
    failure_threshold: int = 3
    retention: float = 7 * 86_400.0
    """Seconds for which the position of a log is kept that the server no longer lists.

    One that returns is read on, and not from its first entry again.
    """
    may_lose: bool = False

    @property
    def kind(self) -> str:
        return KIND

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def has_event_times(self) -> bool:
        return False  # the server cannot be asked for the entry at a time

    def scopes(self) -> tuple[str, ...]:
        return (SCOPE,)

    def scope_of(self, split_id: SplitId) -> str:
        return str(split_id[0])

    def subscribes(self, split_id: SplitId) -> bool:
        return split_id[0] == SCOPE

    def discover(self, scope: str, round_number: int) -> ListLogs:
        return ListLogs(scope=scope, round=round_number, server=self.server)

    def initialize(
        self, scope: str, split_ids: Collection[SplitId], *, is_first: bool
    ) -> FirstEntries:
        return FirstEntries(scope=scope, split_ids=tuple(split_ids), server=self.server)

    def create_split(
        self, split_id: SplitId, position: Position, attributes: Mapping[str, Any]
    ) -> LogSplit:
        return LogSplit(name=str(split_id[1]), number=int(position or 0))

    def reader_settings(self) -> Mapping[str, Any]:
        return {KIND: self.server.to_json()}
