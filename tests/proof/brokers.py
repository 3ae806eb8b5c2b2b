"""Brokers in the explored world.

Which partitions exist, in which life of their topic, and what a client is told.

The shipped adapter (`KafkaAdmin`) asks the client below instead of librdkafka's, so that listing,
identities, start and stop offsets and the ends of partitions are computed by the code that ships.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, TypeAlias

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import Anchor, KafkaCluster
from balanced_source_adapters.kafka.admin import KafkaAdmin
from balanced_source_adapters.kafka.client import Tail
from balanced_source_adapters.kafka.id_memory import IdMemory
from balanced_source_adapters.kafka.topics import Topic

Lives: TypeAlias = Mapping[SplitId, int]
"""Partition that exists → how many topics of its name there were before."""

FIRST_LIFE: Final = 0


def identity_of(topic: str, life: int) -> str:
    """Returns the topic id that brokers report."""
    return f"{topic}-{life}"


def life_of(identity: str | None) -> int:
    """Returns which life of a topic an id names; a split without an id belongs to the first."""
    return FIRST_LIFE if identity is None else int(identity.rsplit("-", 1)[1])


def before_recreation(lives: Lives) -> dict[SplitId, int] | None:
    """Returns the partitions before the last life of their topics; None if there was none."""
    former = {s: max(FIRST_LIFE, life - 1) for s, life in lives.items()}
    return former if former != dict(lives) else None


def recreated(lives: Lives, cluster: str, topic: str) -> dict[SplitId, int]:
    """Returns the partitions after a topic was deleted and created again with the same name."""
    return {s: life + (s[:2] == (cluster, topic)) for s, life in lives.items()}


class Client:
    """Answers for one cluster. It has the methods of `ClusterClient` that the adapter calls.

    Args:
        cluster: name of the cluster.
        lives: all partitions that exist, of any cluster.
        records: number of records in each partition.
    """

    def __init__(self, cluster: str, lives: Lives, records: int) -> None:
        self.cluster = cluster
        self._lives = {s: life for s, life in lives.items() if s[0] == cluster}
        self._records = records

    def topic_names(self) -> list[str]:
        return sorted({str(s[1]) for s in self._lives})

    def topics(self, names: Collection[str], *, must_be_readable: bool = False) -> dict[str, Topic]:
        found: dict[str, Topic] = {}
        for name in names:
            members = {int(s[2]): life for s, life in self._lives.items() if s[1] == name}
            if members:
                found[name] = Topic(frozenset(members), identity_of(name, max(members.values())))
        return found

    def tails(self, split_ids: Iterable[SplitId]) -> dict[SplitId, Tail]:
        return {
            s: Tail(offset=end, leader_epoch=None)
            for s, end in self.ends(split_ids, Anchor.LATEST).items()
        }

    def ends(self, split_ids: Iterable[SplitId], anchor: Anchor) -> dict[SplitId, int]:
        offset = 0 if anchor is Anchor.EARLIEST else self._records
        return {s: offset for s in split_ids if s in self._lives}


class Admin(KafkaAdmin):
    """The shipped adapter with the client above. Its clock stands still."""

    def __init__(self) -> None:
        super().__init__()
        self._lives: Lives = {}
        self._records = 0
        self._memories_of: dict[str, IdMemory] = {}

    def set(self, lives: Lives, records: int, *, known: Lives | None = None) -> None:
        """Say what exists from now on.

        Args:
            lives: all partitions that exist, of any cluster.
            records: number of records in each.
            known: partitions when their topics' ids were asked for last, a moment ago; None if that
                was too long ago.
        """
        self._lives, self._records = lives, records
        self._memories_of = {}
        for s, life in (known or {}).items():
            memory = self._memory_of(str(s[0]))
            memory.keep({**memory.recall(), str(s[1]): identity_of(str(s[1]), life)})

    def _client(self, cluster: KafkaCluster) -> Any:
        return Client(cluster.name, self._lives, self._records)

    def _memory(self, client: Any) -> IdMemory:
        return self._memory_of(client.cluster)

    def _memory_of(self, cluster: str) -> IdMemory:
        return self._memories_of.setdefault(cluster, IdMemory(clock=lambda: 0.0))
