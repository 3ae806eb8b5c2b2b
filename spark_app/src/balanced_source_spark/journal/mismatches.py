"""What is said where a journal and a Spark checkpoint do not fit, or a split stays behind."""

from collections.abc import Mapping

from balanced_source.api import SplitId
from balanced_source.documents.journal import JournalPoint
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.names import split_name


def older(point: JournalPoint, newest: int) -> str:
    """Return what is said if the checkpoint is older than its journal."""
    return (
        f"the Spark checkpoint is older than its journal: it ends with micro-batch {point.number},"
        f" and the journal has records up to {newest}. The checkpoint was restored from an older"
        " copy, or asynchronous progress tracking is on. Records are delivered again, and a sink"
        " that recognises micro-batches by their number may skip new ones. Restore the sink to the"
        " same point"
    )


def lost(point: JournalPoint, newest: int) -> str:
    """Return what is said if the journal is older than the checkpoint."""
    return (
        f"the journal is older than the Spark checkpoint: it ends with micro-batch {newest}, and"
        f" the checkpoint with {point.number}. Where that micro-batch ended is unknown. Restore the"
        " journal that belongs to the checkpoint, or start the query with a new checkpointLocation"
    )


def too_old(point: JournalPoint, newest: int) -> str:
    """Return what is said if the journal no longer has what the checkpoint ends with."""
    return (
        f"the Spark checkpoint ends with micro-batch {point.number}, whose records were deleted:"
        f" its journal is at {newest}. Where that micro-batch ended is unknown. Restore a newer"
        " checkpoint, or start the query with a new checkpointLocation"
    )


def stuck(
    split_id: SplitId, end: StreamOffset, targets: Mapping[SplitId, int], timeout: float
) -> str:
    """Return what is said if a split is not read up to its target."""
    return (
        f"split {split_name(split_id)} stays at {end.positions[split_id]} for {timeout:.0f} s,"
        f" and was to be read up to {targets.get(split_id)}: check that the source still has"
        " these records"
    )
