"""Which topics of a process were created again.

A consumer that is kept serves no topic that was deleted and created again under its name: what it
has fetched ahead are records of the old topic, at offsets that the new one has, too. And where the
old topic has had several leaders, librdkafka (2.16) takes the new one's leader epochs for outdated,
does not move to its leaders, and waits without an error.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from balanced_source.connectors.kafka import KafkaSplitId
from balanced_source.host import SplitRange

_topics: Final[dict[tuple[str, str], str]] = {}
"""Cluster and topic → id of the topic that this process reads."""
_renewals: Final[Counter[str]] = Counter()
"""Cluster → how often one of its topics turned out to be another one."""


def renewals_of(cluster: str, ranges: Sequence[SplitRange]) -> int:
    """Return a number that grows when a topic is recreated, for the key of a kept consumer.

    Args:
        cluster: name.
        ranges: what is read now, with the ids of the topics.
    """
    for topic, identity in {
        (KafkaSplitId.of(r.split_id).topic, r.identity) for r in ranges if r.identity is not None
    }:
        if _topics.setdefault((cluster, topic), identity) != identity:
            _topics[cluster, topic] = identity
            _renewals[cluster] += 1
    return _renewals[cluster]
