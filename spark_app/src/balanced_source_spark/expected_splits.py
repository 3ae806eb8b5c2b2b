"""The splits that a query which ends by itself has to read: those that it found at its start.

After a restart the splits of the checkpoint are assigned first, and new ones in a later epoch. A
query that looked at the first of these epochs alone would end without the new ones.
"""

import time
from typing import Final

from balanced_source.api import SplitId
from balanced_source.connectors.discovery import some
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host import readers_on
from balanced_source.names import counted
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.host_runtime import HostRuntime

_LOOK: Final = 0.05
"""Seconds between two looks at the newest assignment."""


class ExpectedSplits:
    """Those that are not adopted yet. Used by the planning thread.

    Args:
        host: whose splits these are.
        timeout: seconds to wait for them.
    """

    def __init__(self, *, host: str, timeout: float) -> None:
        self._host = host
        self._timeout = timeout
        self._splits: set[SplitId] = set()

    def expect(self, assignment: Assignment) -> None:
        """Expect all splits that an assignment gives to this host."""
        self._splits = _of_host(assignment, self._host)

    def base(self, runtime: HostRuntime, delivered: StreamOffset) -> StreamOffset | None:
        """Return where the next micro-batch begins, with all splits that are expected.

        Args:
            runtime: of the host.
            delivered: everything up to there is committed.

        Raises:
            ChannelError: a split is not assigned to this host in time.
        """
        base = runtime.base()
        if not self._splits:  # nearly always, and an idle query asks a hundred times a second
            return base
        # What the checkpoint has was reported, so it is in the first epoch, or has left the source.
        self._splits -= delivered.positions.keys()
        deadline = time.monotonic() + self._timeout
        while self._await_more(runtime, base):
            if time.monotonic() > deadline:
                raise ChannelError(
                    f"{counted(len(self._splits), 'split')}, such as"
                    f" {some(sorted(self._splits)[:1])}, there when the query started, and without"
                    f" a reader {self._timeout:.0f} s later. Start the query again: something may"
                    " have been deleted"
                )
            time.sleep(_LOOK)
            base = runtime.base()
        return base

    def _await_more(self, runtime: HostRuntime, base: StreamOffset | None) -> bool:
        if base is not None:
            self._splits -= base.positions.keys()
        settled = runtime.settled_epoch
        newest = runtime.newest_assignment(timeout=0.0)
        if newest is not None:
            # Other hosts read what has moved to them.
            self._splits -= newest.owners.keys() - _of_host(newest, self._host)
            # Before the report of the checkpoint, splits were guessed: those that were read long
            # ago, such as shards that were split since, are there and have no owner.
            if settled is not None and newest.epoch >= settled:
                self._splits &= newest.owners.keys()
        return bool(self._splits)


def _of_host(assignment: Assignment, host: str) -> set[SplitId]:
    readers = frozenset(readers_on(assignment, host))
    return {s for s, owner in assignment.owners.items() if owner in readers}
