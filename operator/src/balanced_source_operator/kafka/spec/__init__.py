"""``spec.source.kafka`` as pydantic models: this branch of the CRD."""

import enum
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import ConfigDict, Field

from balanced_source_operator.contract.base import Duration, Model, rule, with_rules
from balanced_source_operator.kafka.spec.clusters import BROKERS, ClusterSpec, ClustersSource
from balanced_source_operator.kafka.spec.limits import Limits
from balanced_source_operator.kafka.spec.offsets import TOPIC, Group, StartingOffsets, StoppingOffsets
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
    """Looking for new topics and partitions."""

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
    """Time between two looks, at least 1s. 0 looks once, when the source starts."""

    failure_threshold: Annotated[int, Field(ge=1, le=1000)] = 1
    """Failures in a row of one cluster until the condition Degraded says so. Others go on anyway; attempts follow in
    growing intervals, a minute at most."""


class KafkaSpec(Model):
    """Topics on one Kafka cluster or many."""

    model_config = ConfigDict(
        json_schema_extra=with_rules(
            rule(
                "has(self.stoppingOffsets) == has(oldSelf.stoppingOffsets) "
                "&& (!has(self.stoppingOffsets) || self.stoppingOffsets == oldSelf.stoppingOffsets)",
                "stoppingOffsets cannot be changed while the source lives: make a new source",
            ),
            rule("has(self.clusters) != has(self.clustersFrom)", "set either clusters or clustersFrom"),
            rule(
                "has(self.clustersFrom) == (has(self.subscription.streams) || has(self.subscription.streamPattern))",
                "streams and streamPattern go with clustersFrom, all other subscriptions with clusters",
            ),
        )
    )

    clusters: (
        Annotated[
            list[ClusterSpec],
            Field(
                min_length=1,
                max_length=32,
                json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
            ),
        ]
        | None
    ) = None
    """The clusters."""

    clusters_from: ClustersSource | None = None
    """Who names the clusters, instead of `clusters`; the subscription chooses among its streams."""

    enumerator_mode: EnumeratorMode = EnumeratorMode.GLOBAL
    """Global: splits of all clusters are balanced together. PerCluster: each cluster is balanced by itself, as in
    Flink's default mode; all together are less even."""

    removed_cluster_retention: Duration = "168h"
    """Time for which positions of clusters, topics and partitions that were removed are kept; if they return in that
    time they go on there. 0 forgets them at once."""

    subscription: Subscription
    """Which topics and partitions."""

    starting_offsets: StartingOffsets = StartingOffsets()
    """Where reading starts."""

    stopping_offsets: StoppingOffsets | None = None
    """Where reading ends; the query ends by itself then, and the source is Finished. Absent: it reads on for ever.
    Cannot be changed: make a new source."""

    on_data_loss: DataLoss = DataLoss.FAIL
    """When records are gone before they were read. Fail: retention that was faster fails the query, and a topic that
    was deleted and created anew is not read until somebody decides. Continue: what is gone is skipped and counted, and
    the new topic is read from its beginning."""

    commit_group: Group | None = None
    """Consumer group whose offsets follow the query, for lag monitors and KEDA; nothing ever joins it, and it is not
    read back unless startingOffsets asks for it. The user needs Read on the group."""

    limits: Limits = Limits()
    """How much a micro-batch reads."""

    discovery: Discovery = Discovery()
    """How new topics and partitions are found."""
