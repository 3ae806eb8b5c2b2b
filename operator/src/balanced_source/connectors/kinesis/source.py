"""Kinesis streams as a source: what is read, as values. Scopes of discovery are the streams."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from balanced_source.api import (
    Boundedness,
    Position,
    RebalancePolicy,
    SplitEnumeratorContext,
    SplitId,
    SupportsSplitReassignmentOnRecovery,
)
from balanced_source.assigners import RoundRobinAssigner, SplitAssigner
from balanced_source.connectors.discovery import (
    Discover,
    DiscoveringSource,
    DiscoveryState,
    Initialize,
    some,
)
from balanced_source.connectors.kinesis.contract import DiscoveredShards, ShardDiscovery
from balanced_source.connectors.kinesis.enumerator import ShardEnumerator
from balanced_source.connectors.kinesis.later import Later
from balanced_source.connectors.kinesis.lineage import Shard
from balanced_source.connectors.kinesis.names import arns, is_arn, meant, name_of
from balanced_source.connectors.kinesis.settings import (
    KIND,
    OnShardLoss,
    Server,
    ShardReaderSettings,
)
from balanced_source.connectors.kinesis.split import ShardSplit, split_of
from balanced_source.connectors.kinesis.start import TRIM_HORIZON, Start, StartAt
from balanced_source.errors import RefusedDiscoveryError
from balanced_source.names import counted
from balanced_source.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ListShards(Discover):
    """List the shards of a stream; the result is a `DiscoveredShards`."""

    scope: str
    round: int
    server: Server


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstPositions(Initialize):
    """Say where reading of shards starts; the result is a sequence of `ShardSplit`.

    Attributes:
        is_overdue: see `Later`.
    """

    scope: str
    split_ids: tuple[SplitId, ...]
    server: Server
    start: Start
    is_overdue: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KinesisSource(
    DiscoveringSource[ShardSplit], ShardDiscovery, SupportsSplitReassignmentOnRecovery
):
    """A value: equal settings make equal sources.

    Attributes:
        streams: names or ARNs.
        server: how they are reached.
        start: where reading of a stream starts that is read for the first time.
        assigner: owner policy.
        rebalance_policy: when splits may move.
        discovery_interval: seconds between two looks for new shards. When a shard is read to its
            end, its children are looked for at once.
        failure_threshold: failures of a stream in a row until that is a problem to tell people of.
        retention: seconds for which positions are kept of streams that are taken out of the source.
        on_loss: what happens when records are gone before they were read.
    """

    streams: tuple[str, ...]
    server: Server = field(default_factory=Server)
    start: Start = TRIM_HORIZON
    assigner: SplitAssigner = field(default_factory=RoundRobinAssigner)
    rebalance_policy: RebalancePolicy = field(default_factory=RebalancePolicy)
    discovery_interval: float | None = 30.0
    failure_threshold: int = 3
    losses_are_fatal: ClassVar[bool] = True
    retention: float = 0.0
    on_loss: OnShardLoss = OnShardLoss.FAIL
    _meant: dict[str, str | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """What `meant` returned: it is asked for each shard of all streams in each listing."""

    @property
    # An attribute of the contract, derived here
    def may_lose(self) -> bool:  # type: ignore[override]
        return self.on_loss is OnShardLoss.CONTINUE

    @property
    def kind(self) -> str:
        return KIND

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def has_ending_splits(self) -> bool:
        return True

    def counts_unread(self, split_id: SplitId) -> bool:
        """A stream tells how far a shard is behind in time, and not in records."""
        del split_id
        return False

    def scopes(self) -> tuple[str, ...]:
        return self.streams

    def scope_of(self, split_id: SplitId) -> str:
        stream = str(split_id[0])
        return self._stream(stream) or stream

    def subscribes(self, split_id: SplitId) -> bool:
        return self._stream(str(split_id[0])) is not None

    def _stream(self, spelling: str) -> str | None:
        """Return which stream of the source a spelling means, if any."""
        if spelling not in self._meant:
            self._meant[spelling] = meant(spelling, self.streams)
        return self._meant[spelling]

    def discover(self, scope: str, round_number: int) -> ListShards:
        return ListShards(scope=scope, round=round_number, server=self.server)

    def initialize(
        self, scope: str, split_ids: Collection[SplitId], *, is_first: bool
    ) -> FirstPositions:
        if not is_first:
            return self.initialize_later(scope, split_ids, Later())
        return FirstPositions(
            scope=scope, split_ids=tuple(split_ids), server=self.server, start=self.start
        )

    def initialize_later(
        self, scope: str, split_ids: Collection[SplitId], later: Later
    ) -> FirstPositions:
        start = TRIM_HORIZON
        if later.time is not None:
            start = Start(at=StartAt.AT_TIMESTAMP, time=later.time)
        return FirstPositions(
            scope=scope,
            split_ids=tuple(split_ids),
            server=self.server,
            start=start,
            is_overdue=later.is_overdue,
        )

    def skipped(self, shards: Mapping[SplitId, Shard]) -> frozenset[SplitId]:
        return self.start.skipped(shards)

    def wrong_start(
        self, scope: str, shards: Mapping[SplitId, Shard]
    ) -> RefusedDiscoveryError | None:
        text = self.start.fault(scope, shards)
        if not text:
            return None
        return RefusedDiscoveryError(
            f"stream {scope} {text}", scope=scope, reason=Reason.POSITION_OUT_OF_RANGE
        )

    def unread(self, splits: Collection[ShardSplit], *, exists: bool) -> list[str]:
        names: dict[str, list[str]] = {}
        for split in sorted(splits, key=lambda split: split.split_id):
            names.setdefault(split.stream, []).append(split.shard)
        what = (
            "was deleted and created again"
            if exists
            else "does not retain the rest any more, or was deleted"
        )
        return [
            f"stream {stream}: {counted(len(shards), 'shard')} not read to the end, and the stream"
            f" {what}: {some([(shard,) for shard in shards])}. The unread records are lost"
            for stream, shards in names.items()
        ]

    def recreation_advice(self) -> str:
        return (
            "if another region, endpoint or account is set than before, restore it; otherwise set"
            " onDataLoss to Continue"
        )

    def create_split(
        self, split_id: SplitId, position: Position, attributes: Mapping[str, Any]
    ) -> ShardSplit:
        return split_of(split_id, position, attributes)

    def reader_settings(self) -> Mapping[str, Any]:
        settings = ShardReaderSettings(
            server=self.server, on_loss=self.on_loss, arns=arns(self.streams)
        )
        return {KIND: settings.to_json()}

    def create_enumerator(self, context: SplitEnumeratorContext[ShardSplit]) -> ShardEnumerator:
        return ShardEnumerator(context, self, DiscoveryState())

    def restore_enumerator(
        self, context: SplitEnumeratorContext[ShardSplit], state: DiscoveryState[ShardSplit]
    ) -> ShardEnumerator:
        return ShardEnumerator(context, self, state)


def named_twice(streams: Sequence[str]) -> str:
    """Return what is wrong with names and ARNs that may mean the same stream; empty if nothing is.

    Each record of such a stream would be delivered twice.
    """
    if len(set(streams)) < len(streams):
        return "names a stream twice: remove one"
    by_arn = {name_of(stream): stream for stream in streams if is_arn(stream)}
    if both := sorted(by_arn.keys() & set(streams)):
        return (
            f"names a stream twice, as {both[0]} and {by_arn[both[0]]}: remove one, or use the ARNs"
            " of both if they are different streams"
        )
    return ""


def first_splits(
    call: FirstPositions, *, created: str | None, now: int, retention: int | None
) -> list[ShardSplit]:
    """Return the answer to a call.

    LATEST becomes a time: reading from "the end" a second time would skip what came in between.

    Args:
        call: the question.
        created: identity of the stream.
        now: time of the server in milliseconds since the epoch.
        retention: of the stream, in milliseconds; None: unknown.
    """
    time = now if call.start.at is StartAt.LATEST else call.start.time
    # So long ago, at least, that the first records may have expired.
    found = now - retention - 1 if call.is_overdue and retention is not None else now
    return [
        ShardSplit(
            stream=str(split_id[0]),
            shard=str(split_id[1]),
            time=time,
            sequence=call.start.sequence_of(split_id),
            found=found,
            created=created,
        )
        for split_id in call.split_ids
    ]


def discovered(shards: Mapping[SplitId, Shard], *, created: str | None) -> DiscoveredShards:
    """Return the answer to a `ListShards`."""
    identities = {} if created is None else dict.fromkeys(shards, created)
    return DiscoveredShards(split_ids=frozenset(shards), identities=identities, shards=shards)
