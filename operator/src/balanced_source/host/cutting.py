"""Cuts hot splits' ranges, so that the readers of one micro-batch have equally much to read.

A split has one owner, but a micro-batch is only as fast as its slowest reader. Where whole splits
cannot be even (one partition of a skewed topic may hold a third of all records), the surplus of a
reader is read by others *in this micro-batch*, as offset ranges that do not overlap. Owners do not
change: the next micro-batch starts from them again. Spark's own Kafka source cuts blindly
(`minPartitions`, `maxRecordsPerPartition`: SPARK-49259); this cuts to equalise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from balanced_source.host.ranges import SplitRange


def equalise(
    shares: Mapping[int, Sequence[SplitRange]], *, max_records: int
) -> Mapping[int, tuple[SplitRange, ...]]:
    """Shares of all readers after the cut.

    Each cut fills a reader or relieves one, so there are fewer cuts than readers. A reader gets at
    most one range of a split. Ranges whose positions are no numbers stay where they are.

    Args:
        shares: reader → ranges of the splits that it owns; readers without any included.
        max_records: a reader with fewer records hands nothing over, so small micro-batches stay
            with the owners.

    Returns:
        reader → ranges. No reader has more records than the larger of `max_records` and the mean,
        rounded up.
    """
    loads = {reader: sum(map(length, ranges)) for reader, ranges in shares.items()}
    # Rounded up, or a rest would have no reader that may take it.
    target = max(max_records, -(-sum(loads.values()) // max(1, len(loads))))
    result = {reader: list(ranges) for reader, ranges in shares.items()}
    # Falling, because receivers are taken from the end of the list: the emptiest first.
    receivers = sorted(
        (r for r in loads if loads[r] < target), key=lambda r: (loads[r], r), reverse=True
    )
    for donor in sorted(loads, key=lambda r: (-loads[r], r)):
        surplus = loads[donor] - target
        # The target is at least the mean, so the other readers have room for every surplus.
        while surplus > 0:
            receiver = receivers[-1]
            moved = _hand_over(
                result[donor], result[receiver], min(surplus, target - loads[receiver])
            )
            surplus -= moved
            loads[receiver] += moved
            # A full reader is not tried again, which bounds the number of cuts.
            if loads[receiver] >= target:
                receivers.pop()
    return {reader: tuple(ranges) for reader, ranges in result.items()}


def length(piece: SplitRange) -> int:
    """Offsets between start and end, an upper bound of the records.

    0 if positions are no numbers.
    """
    if isinstance(piece.start, int) and isinstance(piece.end, int):
        return max(0, piece.end - piece.start)
    return 0


def _hand_over(donor: list[SplitRange], receiver: list[SplitRange], wanted: int) -> int:
    """Move the tail of the donor's longest range, or all of it; returns how many records.

    The donor has records to give, so its longest range is not empty.
    """
    longest = max(range(len(donor)), key=lambda i: (length(donor[i]), donor[i].split_id))
    piece = donor[longest]
    size = length(piece)
    # Whole ranges move uncut: a cut makes two readers open the same split.
    if size <= wanted:
        receiver.append(donor.pop(longest))
        return size
    # The tail goes, so the owner's range begins where the split stands.
    cut = int(piece.end or 0) - wanted
    donor[longest] = replace(piece, end=cut)
    receiver.append(replace(piece, start=cut))
    return wanted
