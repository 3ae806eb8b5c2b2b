"""Compares the ends of a query with those that its Spark checkpoint knows."""

from typing import Final

from balanced_source.connectors.kafka.offsets import AtOffset, OffsetsInitializer
from balanced_source.connectors.kafka.split import KafkaPartitionSplit
from balanced_source.names import split_name

_NONE: Final = "no end"


def other_end(split: KafkaPartitionSplit, chosen: OffsetsInitializer | None) -> str:
    """Return why a split of a checkpoint does not end where it is asked for; empty if it may.

    An end that is resolved when a query starts, such as the latest offset, is not compared: the
    checkpoint keeps the first one.

    Args:
        split: as the checkpoint has it.
        chosen: ends of the query now; None: it does not end.
    """
    stop, asked = split.stopping_offset, _asked(split, chosen)
    if (stop is None) is (chosen is None) and asked in (None, stop):
        return ""
    former = _NONE if stop is None else f"offset {stop}"
    now = _NONE if chosen is None else "another end" if asked is None else f"offset {asked}"
    return (
        f"the Spark checkpoint of this query has {former} as the end of"
        f" {split_name(split.split_id)}, and the options ask for {now}. The end of a query cannot"
        " be changed: set endingOffsets as before, or give the query another checkpointLocation and"
        " the positions that it has read up to as startingOffsets"
    )


def _asked(split: KafkaPartitionSplit, chosen: OffsetsInitializer | None) -> int | None:
    """Return the offset that is asked for by its number."""
    if chosen is None:
        return None
    first = chosen.wishes(split.topic, split.partition)[0]
    return first.offset if isinstance(first, AtOffset) else None
