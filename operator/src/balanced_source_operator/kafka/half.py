"""Kafka's operator half; see `OperatorHalf`."""

from collections.abc import Mapping
from typing import Any, Final

from balanced_source.api import Source
from balanced_source.connectors.kafka import KafkaSource, initializer_text
from balanced_source.errors import ContractViolationError, InvalidSpecError
from balanced_source_operator.contract.half import Common, OperatorHalf, TextReference, Texts
from balanced_source_operator.kafka.spec import WORDS, KafkaSpec
from balanced_source_operator.kafka.translate import to_kafka_source

_FIXED: Final = "cannot be changed: create a new source instead"


class KafkaOperatorHalf(OperatorHalf[KafkaSpec]):
    """Topics on one Kafka cluster or many."""

    spec = KafkaSpec
    description = "Topics on Kafka clusters."
    words = WORDS

    def texts(self, spec: KafkaSpec) -> tuple[TextReference, ...]:
        """The metadata of `clustersFrom`."""
        if spec.clusters_from is None:
            return ()
        reference = spec.clusters_from.config_map_ref
        return (TextReference(reference.name, reference.key),)

    def to_source(self, spec: KafkaSpec, common: Common, texts: Texts, *, field: str) -> KafkaSource:
        metadata = next((texts.get(reference) for reference in self.texts(spec)), None)
        return to_kafka_source(spec, common, metadata, field=field)

    def check_change(self, before: Source[Any, Any], after: Source[Any, Any], *, field: str) -> None:
        """Refuse a changed end where the API server cannot: in metadata of `clustersFrom`, and in local mode.

        Splits carry their end from the moment they are found: another one would be in effect for some and not for
        others.
        """
        former, kafka = _kafka(before), _kafka(after)
        if former.stopping_offsets != kafka.stopping_offsets:
            raise InvalidSpecError(_FIXED, field=f"{field}.stoppingOffsets")
        known = {cluster.name: cluster.stopping_offsets for cluster in (*former.clusters, *former.inactive)}
        for cluster in (*kafka.clusters, *kafka.inactive):
            if known.get(cluster.name, cluster.stopping_offsets) != cluster.stopping_offsets:
                raise InvalidSpecError(_FIXED, field=f"cluster {cluster.name}: stoppingOffsets")

    def fixed(self, source: Source[Any, Any]) -> Mapping[str, str]:
        """Return all ends: see `check_change`."""
        kafka = _kafka(source)
        own = {f"cluster {c.name}: stoppingOffsets": c.stopping_offsets for c in (*kafka.clusters, *kafka.inactive)}
        ends = {"stoppingOffsets": kafka.stopping_offsets, **own}
        return {name: "" if end is None else initializer_text(end) for name, end in ends.items()}


def _kafka(source: Source[Any, Any]) -> KafkaSource:
    if not isinstance(source, KafkaSource):
        raise ContractViolationError(f"{type(source).__name__} is not a Kafka source")
    return source
