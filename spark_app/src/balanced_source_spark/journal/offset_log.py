"""Looks whether Spark has logged a micro-batch before it runs.

With asynchronous progress tracking Spark logs offsets after the fact, and not all of them. After a
restart it would plan a micro-batch again whose range is sealed already, under the number of one
that the sink may have committed.

Two signs tell. Where the journal lies in the checkpoint, the newest entry of the offset log can be
read. Everywhere, there is the order of Spark's calls: it says `commit` for the micro-batch before
when it has logged a new one. With asynchronous tracking, the micro-batch before counts as committed
only when the new one was logged in the background, and Spark says so at the micro-batch after that.
So a new query is found out when its second micro-batch is planned, also if its micro-batches are
slow and each of them is logged; one that starts again, at its first new one.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from balanced_source.errors import InvalidSpecError

_VERSION: Final = "v1"
"""First line of an entry in the format that is read here: a version, metadata, and an offset per
source."""

_NOTHING: Final = "-"
"""Entry of a source that has no offset yet."""


def check_logged(newest: str | None, end: Mapping[str, Any]) -> None:
    """Check that the newest entry of the offset log has this end.

    Args:
        newest: see `JournalStore.newest_offsets`; None says nothing.
        end: offset of the micro-batch that is planned.

    Raises:
        InvalidSpecError: it has another one.
    """
    entries = _offsets(newest)
    # What cannot be read says nothing: the order of calls is the other sign.
    if entries is None or end in entries:
        return
    raise _refused()


class CommitOrder:
    """Checks that Spark commits the micro-batch before when it plans a new one."""

    def __init__(self) -> None:
        self._committed: Mapping[str, Any] | None = None
        self._offered: Mapping[str, Any] | None = None

    def offered(self, end: Mapping[str, Any]) -> None:
        """The planner has returned this end for a new micro-batch."""
        self._offered = end

    def committed(self, end: Mapping[str, Any]) -> None:
        """Spark is done with everything up to this end."""
        self._committed = end

    def check(self, start: Mapping[str, Any], end: Mapping[str, Any], *, is_first: bool) -> None:
        """Check a micro-batch that Spark plans. A replay is no new one.

        Args:
            start: where it begins.
            end: where it ends.
            is_first: whether nothing can have been committed before.

        Raises:
            InvalidSpecError: Spark has not committed what lies before.
        """
        if not is_first and end == self._offered and start not in (self._committed, end):
            raise _refused()


def _refused() -> InvalidSpecError:
    return InvalidSpecError(
        "must not be used with a source that is read with a journal: its micro-batches must be in"
        " the offset log before they run. Leave it out",
        field="asyncProgressTrackingEnabled",
    )


def _offsets(entry: str | None) -> list[Any] | None:
    """The offsets of an entry; None if it cannot be read here."""
    lines = entry.splitlines() if entry is not None else []
    if not lines or lines[0] != _VERSION:
        return None
    try:
        return [json.loads(line) for line in lines[2:] if line != _NOTHING]
    except ValueError:
        return None
