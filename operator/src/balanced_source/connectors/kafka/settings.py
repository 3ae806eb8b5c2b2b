"""What the readers of a Kafka source must know besides their splits.

One value, with its JSON in the assignment.

This module alone knows the keys. A key that an older version did not write has a default; unknown
keys are ignored.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Self

from balanced_source.api import Json
from balanced_source.connectors.kafka.cluster import KafkaCluster
from balanced_source.connectors.kafka.data_loss import OnDataLoss
from balanced_source.connectors.kafka.limits import ReadLimits
from balanced_source.connectors.kafka.reasons import KafkaReason
from balanced_source.connectors.kafka.titles import titled
from balanced_source.connectors.reader_settings import ReaderSettings
from balanced_source.errors import RefusedDiscoveryError

KIND: Final = "kafka"
"""Key of these settings among those of an assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaReaderSettings(ReaderSettings):
    """How readers read.

    Attributes:
        clusters: how each cluster is reached, by name.
        limits: of each micro-batch.
        on_data_loss: what happens when records are gone before they were read.
        commit_group: consumer group whose offsets follow the query; None if there is none.
    """

    kind: ClassVar[str] = KIND

    clusters: Mapping[str, KafkaCluster] = field(default_factory=dict)
    limits: ReadLimits = field(default_factory=ReadLimits)
    on_data_loss: OnDataLoss = OnDataLoss.FAIL
    commit_group: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the JSON value of the settings; a group that there is none of is left out."""
        found: dict[str, Json] = {
            "clusters": {name: cluster.to_json() for name, cluster in self.clusters.items()},
            "limits": self.limits.to_json(),
            "onDataLoss": self.on_data_loss.value,
        }
        if self.commit_group is not None:
            found["commitGroup"] = self.commit_group
        return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`, also for what older versions wrote."""
        return cls(
            clusters={
                name: KafkaCluster.from_json(name, found)
                for name, found in data.get("clusters", {}).items()
            },
            limits=ReadLimits.from_json(data.get("limits", {})),
            on_data_loss=OnDataLoss(data.get("onDataLoss", OnDataLoss.FAIL.value)),
            commit_group=data.get("commitGroup"),
        )

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Return the Kafka settings among all settings of an assignment.

        The defaults if there are none.

        Raises:
            CorruptDocumentError: they are malformed.
        """
        return cls.found(settings) or cls()

    def cluster(self, name: str) -> KafkaCluster:
        """Return how a cluster is reached.

        Raises:
            RefusedDiscoveryError: the settings do not name this cluster.
        """
        if (found := self.clusters.get(name)) is None:
            raise RefusedDiscoveryError(
                f"cluster {name} was taken out of the source while a micro-batch with its records"
                " was not finished: put it back into clusters with active: false, and leave it"
                " there until that micro-batch is done",
                scope=name,
                reason=KafkaReason.CLUSTER_REMOVED,
            )
        return found

    def title(self, name: str) -> str:
        """Return what messages call a cluster, also one that was taken out."""
        return found.title if (found := self.clusters.get(name)) else titled(name)


class SettingsCache:
    """Reads the settings of an assignment once, although each micro-batch asks for them."""

    def __init__(self) -> None:
        self._last: tuple[Mapping[str, Any] | None, KafkaReaderSettings] = (
            None,
            KafkaReaderSettings(),
        )

    def of(self, settings: Mapping[str, Any]) -> KafkaReaderSettings:
        """Return `KafkaReaderSettings.of`, which is kept while the same object is asked about."""
        seen, found = self._last
        if seen is not settings:
            found = KafkaReaderSettings.of(settings)
            self._last = settings, found
        return found


def with_former(
    settings: Mapping[str, Any], former: Mapping[str, Any], *, held: Collection[str] | None = None
) -> Mapping[str, Any]:
    """Return the newest settings, with the clusters of `former` ones that they do not name.

    A micro-batch that was planned before a cluster left is still to be read.

    Args:
        settings: the newest ones.
        former: what this function returned before.
        held: clusters of the splits that were planned last; None: all that were ever seen may be.
    """
    newest, before = KafkaReaderSettings.found(settings), KafkaReaderSettings.of(former).clusters
    if held is not None:
        before = {name: cluster for name, cluster in before.items() if name in held}
    if newest is None or before.keys() <= newest.clusters.keys():
        return settings
    joined = replace(newest, clusters={**before, **newest.clusters})
    return {**settings, KIND: joined.to_json()}
