"""The port between a driver and the program that assigns splits."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from balanced_source.api import Problem, ProblemKey
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source_spark.instance import Instance

AssignmentListener = Callable[[Assignment], None]
"""Called from a thread of the channel for each assignment seen, in any order, possibly repeatedly.
"""


class AssignmentChannel(Protocol):
    """Documents in both directions. Thread-safe; all methods may be called from any thread.

    Attributes:
        has_operator: whether an operator turns reported problems into conditions. If not, fatal
            ones end the query.
        is_durable: whether the assigning side stores what it decides. If not, Spark's checkpoint is
            all that is stored.
    """

    has_operator: bool
    is_durable: bool

    def start(self, listener: AssignmentListener) -> None:
        """Begin to follow the assignment.

        Faults that pass are retried forever, in the background.
        """
        ...

    def claim(self, host: str) -> int:
        """An incarnation number that no one had before: one more than any in the documents.

        The first `write` with it makes it ours, or is refused because someone was quicker.

        Raises:
            ChannelError: the documents cannot be read now; try again.
        """
        ...

    def former(self, host: str) -> HostReport | None:
        """Return the report that is stored for a host; None if there is none.

        Raises:
            ChannelError: it cannot be read now; try again.
        """
        ...

    def is_gone(self, instance: Instance) -> bool:
        """Return whether a driver is known to have ended; False if unknown."""
        ...

    def write(self, report: HostReport) -> None:
        """Store the report.

        Raises:
            FencedError: a newer incarnation has written since.
            ChannelError: not now; try again.
        """
        ...

    def refusal(self) -> str | None:
        """Why no assignment will come until someone acts.

        None if there is no reason, or it is told elsewhere.
        """
        ...

    def problems(self) -> Mapping[ProblemKey, Problem]:
        """Return the problems of the assigning side, if it runs in this process.

        An operator reports its own.
        """
        ...

    def close(self) -> None:
        """Stop following."""
        ...


@runtime_checkable
class Asking(Protocol):
    """A channel whose process asks the source itself."""

    @property
    def is_asking(self) -> bool:
        """Whether a question to the source is under way."""

    @property
    def undiscovered(self) -> frozenset[str]:
        """The scopes that have not answered yet."""


@runtime_checkable
class SameProcess(Protocol):
    """A channel whose assigning side is in this process, and begins before this driver reports."""

    @property
    def has_heard(self) -> bool:
        """Whether the assigning side knows what this driver's Spark checkpoint holds.

        Before that it looks for start positions, which a query that continues does not need.
        """

    @property
    def settled_epoch(self) -> int | None:
        """The epoch in which everything that is there has an owner; None while that is not known.

        Only what was found since the assigning side has heard counts.
        """

    @property
    def reader_settings(self) -> Mapping[str, Any]:
        """How readers connect, whatever is assigned to them."""


@runtime_checkable
class Rescalable(Protocol):
    """A channel whose number of readers the query's own program may change.

    No one else decides it.
    """

    def rescale(self, parallelism: int) -> None:
        """Set the number of readers; it takes effect at a micro-batch boundary."""
        ...
