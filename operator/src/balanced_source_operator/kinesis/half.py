"""The operator half of Kinesis; see `OperatorHalf`."""

from balanced_source.connectors.kinesis import (
    KinesisSource,
    Server,
    Start,
    StartAt,
    StartWords,
    checked_start,
    named_twice,
)
from balanced_source.durations import seconds
from balanced_source.errors import InvalidSpecError
from balanced_source_operator.contract.addresses import check_endpoint
from balanced_source_operator.contract.half import Common, OperatorHalf, Texts
from balanced_source_operator.kinesis.spec import (
    WORDS,
    KinesisSpec,
    StartingPosition,
    StartingPositionType,
)

_AT = {
    StartingPositionType.TRIM_HORIZON: StartAt.TRIM_HORIZON,
    StartingPositionType.LATEST: StartAt.LATEST,
    StartingPositionType.TIMESTAMP: StartAt.AT_TIMESTAMP,
    StartingPositionType.SEQUENCE_NUMBERS: StartAt.SEQUENCE_NUMBERS,
}


class KinesisOperatorHalf(OperatorHalf[KinesisSpec]):
    """Streams of Amazon Kinesis."""

    spec = KinesisSpec
    description = "Streams of Amazon Kinesis."
    words = WORDS
    columns = ()
    can_be_part = False

    def to_source(
        self, spec: KinesisSpec, common: Common, texts: Texts, *, field: str
    ) -> KinesisSource:
        if why := named_twice(spec.streams):
            raise InvalidSpecError(why, field=f"{field}.streams")
        check_endpoint(spec.endpoint, field=f"{field}.endpoint")
        interval = seconds(spec.discovery_interval)
        if interval < 1:
            raise InvalidSpecError("must be at least 1s", field=f"{field}.discoveryInterval")
        return KinesisSource(
            streams=tuple(spec.streams),
            server=Server(
                endpoint=spec.endpoint or "", region=spec.region or "", secret=spec.secret
            ),
            start=_start(spec.starting_position, spec.streams, field=f"{field}.startingPosition"),
            assigner=common.assigner,
            rebalance_policy=common.rebalance_policy,
            discovery_interval=interval,
            retention=seconds(spec.removed_stream_retention),
            on_loss=spec.on_data_loss,
        )


def _start(spec: StartingPosition, streams: list[str], *, field: str) -> Start:
    sequences = tuple(
        (stream, shard, int(number))
        for stream, shards in sorted((spec.sequence_numbers or {}).items())
        for shard, number in sorted(shards.items())
    )
    words = StartWords(
        time=f"{field}.timestamp",
        sequences=f"{field}.sequenceNumbers",
        kinds={at: f"type {kind.value}" for kind, at in _AT.items()},
    )
    return checked_start(
        Start(at=_AT[spec.type], time=spec.timestamp, sequences=sequences), streams, words
    )
