"""The newest assignment that a driver has seen, and how to wait for it."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from balanced_source.documents.assignment import Assignment
from balanced_source_spark.channels.channel import AssignmentChannel, SameProcess
from balanced_source_spark.channels.errors import NothingAssignedError
from balanced_source_spark.contract.hooks import NO_SETTINGS, WithFormer
from balanced_source_spark.why_nothing import is_over, unassigned, undiscovered

RETRY: Final = 0.2
"""Seconds between two looks while a query cannot continue without an assignment."""


class NewestAssignment:
    """The newest assignment, for whichever incarnation it is.

    Args:
        changed: is notified when the assignment changes; its lock guards this object too.
        channel: says why no assignment comes.
        with_former: joins the settings of a new assignment with those of former ones.

    Attributes:
        assignment: None until the first one was seen.
        joined: how readers connect, from all assignments.
    """

    def __init__(
        self, changed: threading.Condition, channel: AssignmentChannel, with_former: WithFormer
    ) -> None:
        self._changed = changed
        self._channel = channel
        self._with_former = with_former
        self.assignment: Assignment | None = None
        self.joined: Mapping[str, Any] = NO_SETTINGS

    def note(self, assignment: Assignment) -> None:
        """Take note of an assignment, which may be an old one. The caller holds the lock."""
        seen = self.assignment
        # Of one epoch there may be several: they differ in `alignment` and `undiscovered`.
        if seen is None or (assignment.lineage, assignment.epoch) >= (seen.lineage, seen.epoch):
            self.assignment = assignment
            # A micro-batch that was planned earlier may read from a cluster that has left since.
            self.joined = self._with_former(assignment.settings, self.joined)

    def wait(self, *, timeout: float) -> Assignment | None:
        """Return the newest assignment; wait up to `timeout` seconds for the first one."""
        # Asked several times for each micro-batch; once there is one, there is always one.
        if (seen := self.assignment) is not None:
            return seen
        with self._changed:
            self._changed.wait_for(lambda: self.assignment is not None, timeout)
            return self.assignment

    def settings(self, *, timeout: float) -> Mapping[str, Any]:
        """Return how readers connect.

        Clusters that only former assignments named are still in it: a micro-batch may have been
        planned before they left. A driver that assigns by itself knows it without an assignment: a
        replay must not wait for start positions, which the query does not need any more.

        Raises:
            ChannelError: no assignment was seen within `timeout` seconds.
        """
        if isinstance(self._channel, SameProcess) and self.assignment is None:
            return self._channel.reader_settings
        if self.wait(timeout=timeout) is None:
            raise unassigned(timeout, self._channel)
        return self.joined

    def first(
        self,
        *,
        timeout: float,
        check: Callable[[], None],
        refusal: Callable[[], str | None],
    ) -> Assignment:
        """Wait for an assignment of the whole source.

        For queries that end by themselves and cannot wait for the rest.

        Args:
            timeout: seconds.
            check: raises if waiting is in vain.
            refusal: see `AssignmentChannel.refusal`.

        Raises:
            NothingAssignedError: none will come until someone acts.
            ChannelError: there is none after `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        while True:
            assignment = self.wait(timeout=RETRY)
            if assignment is not None and not assignment.undiscovered:
                return assignment
            check()
            # Nothing will come until someone acts, so the reason is better than a time-out.
            if (why := refusal()) is not None:
                raise NothingAssignedError(why)
            if is_over(deadline, self._channel):
                if assignment is not None:
                    raise undiscovered(assignment.undiscovered, timeout)
                raise unassigned(timeout, self._channel)
            with self._changed:
                if self.assignment is assignment:
                    self._changed.wait(RETRY)
