"""``spec.source.kafka`` as pydantic models: this branch of the CRD."""

import enum
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import ConfigDict, Field

from balanced_source.connectors.kafka import BROKERS
from balanced_source_operator.contract.base import Duration, Model, rule, with_rules
from balanced_source_operator.kafka.spec.clusters import ClusterSpec, ClustersSource
from balanced_source_operator.kafka.spec.limits import Limits
from balanced_source_operator.kafka.spec.offsets import (
    TOPIC,
    Group,
    StartingOffsets,
    StoppingOffsets,
)
from balanced_source_operator.kafka.spec.subscription import Subscription

WORDS: Final[Mapping[str, str]] = {
    BROKERS: "host:port, several separated by commas",
    TOPIC: "the name of a topic: letters, digits, '.', '-' and '_'",
}
"""What a pattern asks for."""


class EnumeratorMode(enum.StrEnum):
    """Over what splits are balanced."""

    GLOBAL = "Global"
    PER_CLUSTER = "PerCluster"


class DataLoss(enum.StrEnum):
    """What happens when records are gone before they were read."""

    FAIL = "Fail"
    CONTINUE = "Continue"


class Discovery(Model):
    """Discovery of new topics and partitions."""

    model_config = ConfigDict(
        json_schema_extra=with_rules(
            rule(
                "self.interval == '0' || duration(self.interval) == duration('0s') "
                "|| duration(self.interval) >= duration('1s')",
                "interval must be at least 1s, or 0 to look once",
            )
        )
    )

    interval: Duration = "5m"
    """Time between two discoveries, at least 1s. 0 discovers once, when the source starts."""

    failure_threshold: Annotated[int, Field(ge=1, le=1000)] = 1
    """Number of consecutive failures of one cluster before the condition Degraded reports them.
    Other clusters are not affected. Retries follow at growing intervals of up to one minute."""


class KafkaSpec(Model):
    """Topics on one Kafka cluster or many."""

    model_config = ConfigDict(
        json_schema_extra=with_rules(
            rule(
                "has(self.stoppingOffsets) == has(oldSelf.stoppingOffsets) "
                "&& (!has(self.stoppingOffsets) || self.stoppingOffsets =="
                " oldSelf.stoppingOffsets)",
                "stoppingOffsets cannot be changed: create a new source instead",
            ),
            rule(
                "has(self.clusters) != has(self.clustersFrom)",
                "set either clusters or clustersFrom",
            ),
            rule(
                "has(self.clustersFrom) == (has(self.subscription.streams) ||"
                " has(self.subscription.streamPattern))",
                "streams and streamPattern need clustersFrom; all other subscriptions need"
                " clusters",
            ),
        )
    )

    clusters: (
        Annotated[
            list[ClusterSpec],
            Field(
                min_length=1,
                max_length=32,
                json_schema_extra={
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                },
            ),
        ]
        | None
    ) = None
    """The clusters."""

    clusters_from: ClustersSource | None = None
    """Where the list of clusters comes from, instead of `clusters`. The subscription selects
    streams of that list."""

    enumerator_mode: EnumeratorMode = EnumeratorMode.GLOBAL
    """Global: balances the splits of all clusters together. PerCluster: balances each cluster
    separately, as Flink does by default; the total is less even."""

    removed_cluster_retention: Duration = "168h"
    """How long the positions of removed clusters, topics and partitions are kept. If they return
    within this time, reading continues from there. 0 drops the positions immediately."""

    subscription: Subscription
    """The topics and partitions to read."""

    starting_offsets: StartingOffsets = StartingOffsets()
    """Where reading starts when the source is new.

    Partitions that appear later start at their earliest offset.
    """

    stopping_offsets: StoppingOffsets | None = None
    """Where reading ends. The query then stops, and the source is Finished. Absent: reading does
    not end. It cannot be changed: create a new source instead."""

    on_data_loss: DataLoss = DataLoss.FAIL
    """What to do when records were deleted before they were read. Fail: the query fails if
    retention deleted records, and a topic that was deleted and recreated is not read until this is
    changed. Continue: deleted records are skipped and counted, and a recreated topic is read from
    its start."""

    commit_group: Group | None = None
    """Consumer group to which the positions of the query are committed, for lag monitors and KEDA.
    No reader joins the group, and its offsets are used only if startingOffsets names it. The Kafka
    user needs Read on the group."""

    limits: Limits = Limits()
    """Limits of what one micro-batch reads."""

    discovery: Discovery = Discovery()
    """How new topics and partitions are found."""
