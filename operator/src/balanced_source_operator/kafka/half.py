"""Kafka's operator half; see `OperatorHalf`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from balanced_source.api import Problem, Source, SplitId
from balanced_source.connectors.kafka import (
    SKIPPED_OFFSETS,
    UNCOUNTED_OFFSETS,
    KafkaCluster,
    KafkaSource,
    KafkaSplitId,
    OffsetsInitializer,
    initializer_of,
    initializer_text,
)
from balanced_source.connectors.kafka.reasons import KafkaReason
from balanced_source.connectors.kafka.titles import titled
from balanced_source.errors import ContractViolationError, InvalidSpecError
from balanced_source.names import counted
from balanced_source_operator.contract.half import (
    NO_LOSSES,
    Common,
    Losses,
    OperatorHalf,
    TextReference,
    Texts,
)
from balanced_source_operator.kafka.spec import WORDS, KafkaSpec
from balanced_source_operator.kafka.translate import to_discovery_interval, to_kafka_source

_FIXED: Final = "cannot be changed: create a new source instead"

_ALL: Final = "stoppingOffsets"
"""Name of the end that holds for all clusters without one of their own. Stored: never changed."""


class KafkaOperatorHalf(OperatorHalf[KafkaSpec]):
    """Topics on one Kafka cluster or many."""

    spec = KafkaSpec
    description = "Topics on Kafka clusters."
    words = WORDS
    columns = (
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
        "headers",
        "cluster",
    )
    row_fields = frozenset({"includeHeaders"})

    def texts(self, spec: KafkaSpec) -> tuple[TextReference, ...]:
        """The metadata of `clustersFrom`."""
        if spec.clusters_from is None:
            return ()
        reference = spec.clusters_from.config_map_ref
        return (TextReference(reference.name, reference.key),)

    def to_source(
        self, spec: KafkaSpec, common: Common, texts: Texts, *, field: str
    ) -> KafkaSource:
        metadata = next((texts.get(reference) for reference in self.texts(spec)), None)
        return to_kafka_source(spec, common, metadata, field=field)

    def check_change(
        self, before: Source[Any, Any], after: Source[Any, Any], *, field: str
    ) -> None:
        """Refuse a changed end where the API server cannot.

        In metadata of `clustersFrom`, and in local mode.

        Splits carry their end from the moment they are found: another one would be in effect for
        some and not for others.
        """
        former, kafka = _kafka(before), _kafka(after)
        if former.stopping_offsets != kafka.stopping_offsets:
            raise InvalidSpecError(_FIXED, field=f"{field}.stoppingOffsets")
        known = {
            cluster.name: cluster.stopping_offsets
            for cluster in (*former.clusters, *former.inactive)
        }
        for cluster in (*kafka.clusters, *kafka.inactive):
            if known.get(cluster.name, cluster.stopping_offsets) != cluster.stopping_offsets:
                raise InvalidSpecError(_FIXED, field=_of_cluster(cluster))

    def fixed(self, source: Source[Any, Any]) -> Mapping[str, str]:
        """Return all ends: see `check_change`."""
        kafka = _kafka(source)
        own = {_of_cluster(c): c.stopping_offsets for c in (*kafka.clusters, *kafka.inactive)}
        ends = {_ALL: kafka.stopping_offsets, **own}
        return {name: "" if end is None else initializer_text(end) for name, end in ends.items()}

    def recalled(
        self, spec: KafkaSpec, common: Common, texts: Texts, *, fixed: Mapping[str, str], field: str
    ) -> KafkaSource:
        """Return the source with its former ends, of exactly the clusters that it had."""
        source = self.to_source(spec, common, texts, field=field)
        if not fixed:
            return source
        if changed := fixed.keys() ^ self.fixed(source).keys():
            raise InvalidSpecError(
                "was added or removed while the operator was down", field=min(changed)
            )
        return replace(
            source,
            clusters=tuple(_with_end(cluster, fixed) for cluster in source.clusters),
            inactive=tuple(_with_end(cluster, fixed) for cluster in source.inactive),
            stopping_offsets=_end(fixed, _ALL),
            # A source with an end has lost its interval.
            discovery_interval=to_discovery_interval(spec, field=field),
        )

    def losses(self, numbers: Mapping[str, int]) -> Losses:
        """Return the offsets that were skipped, as ``onDataLoss: Continue`` allows."""
        skipped, uncounted = numbers.get(SKIPPED_OFFSETS, 0), numbers.get(UNCOUNTED_OFFSETS, 0)
        if not skipped:
            return _uncounted(uncounted) if uncounted else NO_LOSSES
        message = (
            f"{counted(skipped, 'offset')} deleted before being read, and skipped (onDataLoss:"
            " Continue)"
        )
        more = (
            f". Whether {uncounted} more had to be skipped is unknown until the brokers answer"
            if uncounted
            else ""
        )
        problem = Problem(reason=KafkaReason.OFFSETS_SKIPPED, message=message + more)
        return Losses(records=skipped, problems=(problem,))

    def left_out(self, source: Source[Any, Any], split_id: SplitId) -> str:
        """Return the cluster or the topic that is not subscribed any more."""
        kafka = _kafka(source)
        if kafka.subscribes(split_id):
            return ""
        cluster, topic, _ = KafkaSplitId.of(split_id)
        title = titled(cluster)
        return f"topic {topic} of {title}" if cluster in kafka.scopes() else title


def _uncounted(offsets: int) -> Losses:
    """Return what is known while it is unknown whether anything was skipped."""
    message = (
        f"{counted(offsets, 'offset')} not checked yet: what was deleted before being read, and"
        " skipped (onDataLoss: Continue), is unknown until the brokers answer"
    )
    doubt = Problem(reason=KafkaReason.OFFSETS_UNCOUNTED, message=message)
    return Losses(records=None, doubts=(doubt,))


def _with_end(cluster: KafkaCluster, fixed: Mapping[str, str]) -> KafkaCluster:
    return replace(cluster, stopping_offsets=_end(fixed, _of_cluster(cluster)))


def _end(fixed: Mapping[str, str], name: str) -> OffsetsInitializer | None:
    try:
        return initializer_of(fixed[name]) if fixed[name] else None
    except ValueError as error:
        raise InvalidSpecError(str(error), field=name) from error


def _of_cluster(cluster: KafkaCluster) -> str:
    return f"cluster {cluster.name}: {_ALL}"


def _kafka(source: Source[Any, Any]) -> KafkaSource:
    if not isinstance(source, KafkaSource):
        raise ContractViolationError(f"{type(source).__name__} is not a Kafka source")
    return source
