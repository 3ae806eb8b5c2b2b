"""Which partitions are read.

FLIP-27's ``KafkaSubscriber``, decided purely over what a cluster lists.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from balanced_source.connectors.discovery import Discovered
from balanced_source.connectors.kafka.pattern import compiled
from balanced_source.connectors.kafka.reasons import KafkaReason
from balanced_source.connectors.kafka.titles import titled
from balanced_source.errors import RefusedDiscoveryError
from balanced_source.names import first_of

INTERNAL_TOPICS: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state"}
)
"""Never matched by a pattern."""

_SHOWN: Final = 5


@lru_cache(maxsize=65536)
def _is_chosen(topic: str, pattern: str, exclude: str | None) -> bool:
    """Asked again and again for each partition of a topic."""
    if topic in INTERNAL_TOPICS or not compiled(pattern).matches(topic):
        return False
    return exclude is None or not compiled(exclude).matches(topic)


class KafkaSubscriber(ABC):
    """A choice of partitions. Values: equal choices compare equal."""

    __slots__ = ()

    @property
    @abstractmethod
    def topics(self) -> tuple[str, ...] | None:
        """Topics to ask the cluster for; None asks for all of them."""

    @abstractmethod
    def subscribes(self, topic: str, partition: int) -> bool:
        """Whether the user wants this partition, should it exist."""

    @abstractmethod
    def select(
        self,
        cluster: str,
        partitions: Mapping[str, frozenset[int]],
        refused: Collection[str] = (),
        *,
        title: str = "",
    ) -> Discovered:
        """Splits of the cluster, given the partitions of each existing topic.

        Args:
            cluster: its name.
            partitions: of the topics that exist, as far as the cluster tells.
            refused: topics of which the cluster tells nothing; they are not reported as missing.
            title: what messages call the cluster, if not by its name.
        """


@dataclass(frozen=True, slots=True)
class TopicList(KafkaSubscriber):
    """All partitions of the named topics."""

    names: tuple[str, ...]

    @property
    def topics(self) -> tuple[str, ...]:
        return self.names

    def subscribes(self, topic: str, partition: int) -> bool:
        return topic in self.names

    def select(
        self,
        cluster: str,
        partitions: Mapping[str, frozenset[int]],
        refused: Collection[str] = (),
        *,
        title: str = "",
    ) -> Discovered:
        # A topic that the user may not describe may exist, so it is not told as missing.
        missing = sorted(set(self.names).difference(partitions, refused))
        return Discovered(
            split_ids=frozenset(
                (cluster, t, p) for t in self.names if t in partitions for p in partitions[t]
            ),
            problem=_missing(cluster, title, "topic", missing),
            absent=frozenset((cluster, topic) for topic in missing),
        )


@dataclass(frozen=True, slots=True)
class TopicPattern(KafkaSubscriber):
    """All partitions of the topics whose whole name matches, and does not match `exclude`.

    See `pattern`.
    """

    pattern: str
    exclude: str | None = None

    @property
    def topics(self) -> None:
        return None

    def subscribes(self, topic: str, partition: int) -> bool:
        return _is_chosen(topic, self.pattern, self.exclude)

    def select(
        self,
        cluster: str,
        partitions: Mapping[str, frozenset[int]],
        refused: Collection[str] = (),
        *,
        title: str = "",
    ) -> Discovered:
        found = frozenset(
            (cluster, t, p) for t, ps in partitions.items() for p in ps if self.subscribes(t, p)
        )
        problem = None
        # Among the refused topics one may match.
        if not found and not refused:
            problem = RefusedDiscoveryError(
                f"no topic on {titled(cluster, title)} matches topicPattern {self.pattern!r}"
                f" (the whole name must match){self._excluded()}: create a topic or change"
                " the pattern; looking again",
                scope=cluster,
                reason=KafkaReason.NO_TOPIC_MATCHES,
            )
        # A cluster without a match is no reason to wait where another one has some.
        return Discovered(
            split_ids=found, problem=problem, absent=frozenset({()} if problem is not None else ())
        )

    def _excluded(self) -> str:
        return "" if self.exclude is None else f" without matching excludePattern {self.exclude!r}"


@dataclass(frozen=True, slots=True)
class PartitionSet(KafkaSubscriber):
    """Exactly the named partitions."""

    partitions: frozenset[tuple[str, int]]

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(sorted({topic for topic, _ in self.partitions}))

    def subscribes(self, topic: str, partition: int) -> bool:
        return (topic, partition) in self.partitions

    def select(
        self,
        cluster: str,
        partitions: Mapping[str, frozenset[int]],
        refused: Collection[str] = (),
        *,
        title: str = "",
    ) -> Discovered:
        existing = {(t, p) for t, p in self.partitions if p in partitions.get(t, ())}
        absent = sorted((t, p) for t, p in self.partitions - existing if t not in refused)
        return Discovered(
            split_ids=frozenset((cluster, t, p) for t, p in existing),
            problem=_missing(cluster, title, "partition", [f"{t}/{p}" for t, p in absent]),
            absent=frozenset((cluster, *place) for place in absent),
        )


def _missing(cluster: str, title: str, what: str, names: list[str]) -> RefusedDiscoveryError | None:
    if not names:
        return None
    shown = first_of(names, _SHOWN)
    is_one = len(names) == 1
    missing = f"{what} {shown} does not" if is_one else f"{what}s {shown} do not"
    return RefusedDiscoveryError(
        f"{missing} exist on {titled(cluster, title)}: create"
        f" {'it' if is_one else 'them'}, or correct the subscription; looking again",
        scope=cluster,
        reason=KafkaReason.UNKNOWN_TOPIC,
        is_hopeless=True,
    )
