"""Looks whether Spark has logged a micro-batch before it runs, where that can be seen.

With asynchronous progress tracking Spark logs offsets after the fact, and not all of them. After a
restart it would plan a micro-batch anew whose range is sealed already, under the number of one that
the sink may have committed.
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
    if entries is None or end in entries:
        return
    raise InvalidSpecError(
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
