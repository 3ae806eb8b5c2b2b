"""An enumerator for sources that list their splits: partitions of topics, shards of streams.

It is complete except for the two questions that only a connector can answer, both asked as values
(`AsyncCall`) and executed elsewhere: which splits are there (`DiscoveringSource.discover`), and
where does reading of new ones start (`DiscoveringSource.initialize`).

A source consists of *scopes* (Kafka: clusters) that are discovered independently, so that one that
is down never blocks the others. Life of a split here:

    discovered ──► in flight ──► unassigned ⇄ assigned ──► finished
                                    ▲            │ not subscribed any more, confirmed
                                    └─ returns ──┴──► retained ──► dropped (deadline)

Upstream's defects that shaped it: a second discovery during initialisation gave a partition two
owners (FLINK-40615): ids in flight are skipped; a restored bounded source never ended
(FLINK-31006): completion is checked after every result; a removed topic was read on
(FLINK-34089): what is not listed is dropped, but only when confirmed, because a broker that is
briefly blind must not erase progress (FLINK-7195).
"""

from balanced_source.connectors.discovery.contract import SplitDiscovery
from balanced_source.connectors.discovery.enumerator import (
    CONFIRMATION_DELAY,
    CONFIRMATIONS,
    MAX_BACKOFF,
    DiscoveringSplitEnumerator,
)
from balanced_source.connectors.discovery.source import DiscoveringSource
from balanced_source.connectors.discovery.values import (
    Alarm,
    Discover,
    Discovered,
    DiscoveryState,
    Initialize,
    Retained,
    some,
)

__all__ = [
    "CONFIRMATIONS",
    "CONFIRMATION_DELAY",
    "MAX_BACKOFF",
    "Alarm",
    "Discover",
    "Discovered",
    "DiscoveringSource",
    "DiscoveringSplitEnumerator",
    "DiscoveryState",
    "Initialize",
    "Retained",
    "SplitDiscovery",
    "some",
]
