"""What the enumerator asks its source beyond `SplitDiscovery`, and what shard discovery returns."""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from balanced_source.api import SplitId
from balanced_source.connectors.discovery import Discovered, Initialize, SplitDiscovery
from balanced_source.connectors.kinesis.later import Later
from balanced_source.connectors.kinesis.lineage import Shard
from balanced_source.connectors.kinesis.split import ShardSplit
from balanced_source.errors import RefusedDiscoveryError


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveredShards(Discovered):
    """Answer to a `ListShards`.

    Attributes:
        shards: the same shards as `split_ids`, with their parents.
    """

    shards: Mapping[SplitId, Shard] = field(default_factory=dict)

    def spelled(self, stream: str) -> Self:
        """Return the same with another spelling of the stream in the ids."""

        def renamed(split_id: SplitId) -> SplitId:
            return (stream, *split_id[1:])

        return replace(
            self,
            split_ids=frozenset(map(renamed, self.split_ids)),
            identities={renamed(s): identity for s, identity in self.identities.items()},
            shards={
                renamed(s): shard._replace(parents=tuple(map(renamed, shard.parents)))
                for s, shard in self.shards.items()
            },
        )


class ShardDiscovery(SplitDiscovery[ShardSplit]):
    """Which shards there are, and where reading of them starts."""

    @abstractmethod
    def skipped(self, shards: Mapping[SplitId, Shard]) -> frozenset[SplitId]:
        """Return the shards of a stream, seen for the first time, that lie before the start."""

    @abstractmethod
    def wrong_start(
        self, scope: str, shards: Mapping[SplitId, Shard]
    ) -> RefusedDiscoveryError | None:
        """Return why a stream cannot be started where the user says; None if it can."""

    @abstractmethod
    def initialize_later(
        self, scope: str, split_ids: Collection[SplitId], later: Later
    ) -> Initialize:
        """The call that begins shards that were found after the first discovery."""
