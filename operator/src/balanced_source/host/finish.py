"""When a reader host has read everything that it will ever get."""

from collections.abc import Mapping

from balanced_source.api import STOP, Json, SplitId
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.stream_offset import StreamOffset


def is_finished(offset: StreamOffset, assignment: Assignment) -> bool:
    """Whether all readers of the host get no more splits and have read theirs to the end.

    A host without readers, such as one that leaves, ends with the source: it may get readers again.

    Args:
        offset: up to which everything is delivered.
        assignment: newest one that the host has seen.
    """
    # An epoch that is not adopted may bring more splits.
    if offset.epoch == 0 or offset.epoch != assignment.epoch:
        return False
    # A host without readers may get some again, so it waits until the source has ended.
    if not assignment.no_more_splits.issuperset(offset.readers or range(assignment.parallelism)):
        return False
    # Its reader found the end, which no one knew before: such a split has no stop.
    done = offset.journal.finished if offset.journal is not None else frozenset()
    left = [s for s in offset.positions if s not in done]
    stops = {s: assignment.attributes.get(s, {}).get(STOP) for s in left}
    return all(stop is not None and (offset.positions[s] or 0) >= stop for s, stop in stops.items())


def is_read(offset: StreamOffset, split_id: SplitId) -> bool:
    """Return whether a split that the offset holds is read to its end there.

    False for one without an end.
    """
    if offset.journal is not None and split_id in offset.journal.finished:
        return True
    stop = offset.stop_of(split_id)
    return stop is not None and (offset.positions[split_id] or 0) >= stop


def with_ends(offset: StreamOffset) -> Mapping[SplitId, Mapping[str, Json]]:
    """Return the attributes of the splits of an offset.

    A split that turned out to be at its end has that as its stop.

    So a report says which splits are read, also those whose ends no one knew before.
    """
    done = offset.journal.finished if offset.journal is not None else frozenset()
    known = offset.attributes
    # The operator does not see the journal: a stop in the report tells it that a split is read.
    found = [s for s in done if s in offset.positions and STOP not in known.get(s, {})]
    return (
        {**known, **{s: {**known.get(s, {}), STOP: offset.positions[s] or 0} for s in found}}
        if found
        else known
    )
