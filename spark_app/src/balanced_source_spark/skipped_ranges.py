"""What a task passes over because it is gone, told to the planning process, which counts it.

Planning counts what was deleted before it planned a micro-batch. What is deleted later, only tasks
see. They send it as they send what they have measured, see `task_samples`: a lost datagram leaves a
line in the executor's log and nothing else. Imported by tasks, so it imports little.
"""

import json
import socket
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from balanced_source.host import SplitRange

if TYPE_CHECKING:
    from balanced_source_spark.partition import SampleTarget

ROOM: Final = 1200
"""Bytes of a datagram, so that networks do not divide it. One range alone may take more."""

_MARK: Final = b"skipped:"
"""Tells such a datagram from a sample, which has the number of a reader there."""


def tell_skipped(target: "SampleTarget | None", ranges: Sequence[SplitRange]) -> None:
    """Tell the planning process of ranges that are not delivered, ever.

    Args:
        target: where it listens; None: no one does.
        ranges: what is gone.
    """
    if target is None:
        return
    for datagram in encoded_ranges(target, ranges):
        send(target, datagram)


def send(target: "SampleTarget", datagram: bytes) -> None:
    """Send a datagram to the planning process, if there is a way."""
    family = socket.AF_INET6 if ":" in target.host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(datagram, (target.host, target.port))
    except OSError:
        # No way to the driver: what tasks say stays unknown, and reading continues.
        return


def encoded_ranges(target: "SampleTarget", ranges: Sequence[SplitRange]) -> Iterator[bytes]:
    """Yield the datagrams of some ranges."""
    head = target.token.encode() + _MARK
    part = [target.part] if target.part else []
    rows: list[str] = []
    for piece in ranges:
        row = json.dumps([[*part, *piece.split_id], piece.start or 0, piece.end or 0])
        if rows and sum(map(len, rows)) + len(rows) + len(row) > ROOM - len(head):
            yield head + f"[{','.join(rows)}]".encode()
            rows = []
        rows.append(row)
    if rows:
        yield head + f"[{','.join(rows)}]".encode()


def decoded_ranges(datagram: bytes, token: str) -> list[SplitRange] | None:
    """Return the ranges in a datagram; None if it has none, or is of no task of this query."""
    head = token.encode() + _MARK
    if not datagram.startswith(head):
        return None
    try:
        rows = json.loads(datagram[len(head) :])
        return [
            SplitRange(split_id=tuple(split_id), start=int(start), end=int(end))
            for split_id, start, end in rows
        ]
    except (ValueError, TypeError, RecursionError):  # cut off on its way
        return []
