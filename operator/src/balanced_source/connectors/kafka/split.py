"""A partition of a topic on a cluster, as a split."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple, Self

from balanced_source.api import IDENTITY, STOP, BoundedSplit, Json, Position, SplitId
from balanced_source.connectors.kafka.offsets import identity_of
from balanced_source.errors import ContractViolationError


class KafkaSplitId(NamedTuple):
    """Names the places of a Kafka split's id.

    It is the plain tuple in all respects (equality, hash, order, JSON). Splits and documents hold
    plain ones, which take a tenth of the time to make: there may be a million. Code that looks at a
    place makes it, by `of`; what asks brokers for all splits several times a second, and the
    enumerator, look at places by number.

    Attributes:
        cluster: name of the cluster in the spec.
        topic: name of the topic.
        partition: number of the partition.
    """

    cluster: str
    topic: str
    partition: int

    @classmethod
    def of(cls, split_id: SplitId) -> Self:
        """Return the id with names for its places.

        Raises:
            TypeError: it has not three places.
        """
        return cls._make(split_id)

    def __str__(self) -> str:
        return f"{self.cluster}/{self.topic}/{self.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaPartitionSplit(BoundedSplit):
    """One partition, read from `offset` on.

    Attributes:
        cluster: name of the cluster in the spec.
        topic: name of the topic.
        partition: number of the partition.
        offset: next record to read; always a real offset, resolved when the split was discovered.
        stopping_offset: first record that is not read any more; None reads on forever.
        topic_id: of the topic that `offset` belongs to; None if no one told.
        is_cut: whether its log began at `offset` when that was looked up, behind records that are
            gone, although it follows a history that ends at a time. Not stored: it is told once.
        void_commit: offset that a group has committed and that its log does not hold, so that
            `offset` is where the user's reset says. Not stored: it is told once.
    """

    cluster: str
    topic: str
    partition: int
    offset: int
    stopping_offset: int | None = None
    topic_id: str | None = None
    is_cut: bool = field(default=False, compare=False)
    void_commit: int | None = field(default=None, compare=False)

    @property
    def split_id(self) -> SplitId:
        return (self.cluster, self.topic, self.partition)

    @property
    def position(self) -> int:
        return self.offset

    @property
    def stopping_position(self) -> int | None:
        return self.stopping_offset

    def at(self, position: Position) -> Self:
        if not isinstance(position, int):
            raise ContractViolationError(f"split {self.split_id}: {position!r} is no offset")
        # Mostly nothing moved, and the same object spares whoever compares versions a look inside.
        return self if position == self.offset else replace(self, offset=position)

    def attributes(self) -> Mapping[str, Json]:
        return _attributes(self.stopping_offset, self.topic_id)


@lru_cache(maxsize=65536)
def _attributes(stopping_offset: int | None, topic_id: str | None) -> Mapping[str, Json]:
    """The same for all partitions of a topic, mostly.

    Asked for every split at every publication.
    """
    everything = {STOP: stopping_offset, IDENTITY: topic_id}
    return {key: value for key, value in everything.items() if value is not None}


def split_of(
    split_id: SplitId, offset: Position, attributes: Mapping[str, Json]
) -> KafkaPartitionSplit:
    """The split that id, offset and attributes describe."""
    cluster, topic, partition = split_id
    if not isinstance(partition, int) or not isinstance(offset, int):
        raise ContractViolationError(f"{split_id} at {offset!r} is not a partition of a topic")
    return KafkaPartitionSplit(
        cluster=str(cluster),
        topic=str(topic),
        partition=partition,
        offset=offset,
        stopping_offset=attributes.get(STOP),
        topic_id=identity_of(attributes.get(IDENTITY)),
    )
