"""Which clusters a driver has been told of; a micro-batch may be older than the newest assignment."""

from collections.abc import Mapping
from typing import Any

from balanced_source.connectors.kafka import KafkaCluster
from balanced_source.errors import RefusedDiscoveryError


def cluster_of(settings: Mapping[str, Any], name: str) -> KafkaCluster:
    """How a cluster is reached.

    Raises:
        RefusedDiscoveryError: the settings know no such cluster.
    """
    found = settings.get("kafka", {}).get("clusters", {}).get(name)
    if found is None:
        raise RefusedDiscoveryError(
            f"cluster {name} was taken out of the source while a micro-batch with its records was not finished: put it "
            "back into clusters with active: false, and leave it there until that micro-batch is done",
            scope=name,
            reason="ClusterRemoved",
        )
    return KafkaCluster.from_json(name, found)


def with_former(settings: Mapping[str, Any], former: Mapping[str, Any]) -> Mapping[str, Any]:
    """Newest settings, and what `former` ones said of clusters that are no more.

    A micro-batch that was planned before a cluster left is still to be read.
    """
    kafka, before = settings.get("kafka"), former.get("kafka", {}).get("clusters", {})
    if kafka is None or before.keys() <= kafka["clusters"].keys():
        return settings
    return {**settings, "kafka": {**kafka, "clusters": {**before, **kafka["clusters"]}}}
