"""Looks whether Spark has logged a micro-batch before it runs, where that can be seen.

With asynchronous progress tracking Spark logs offsets after the fact, and not all of them. After a restart it would
plan a micro-batch anew whose range is sealed already, under the number of one that the sink may have committed.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from balanced_source.errors import InvalidSpecError

_VERSION: Final = "v1"
"""First line of an entry in the format that is read here: a version, metadata, and an offset per source."""

_NOTHING: Final = "-"
"""Entry of a source that has no offset yet."""


def check_logged(journal: Path, end: Mapping[str, Any]) -> None:
    """Check that the newest entry of the offset log has this end, if the journal lies in the Spark checkpoint.

    Args:
        journal: folder of the journal.
        end: offset of the micro-batch that is planned.

    Raises:
        InvalidSpecError: it has another one.
    """
    entries = _newest(journal.parent / "offsets")
    if entries is None or end in entries:
        return
    raise InvalidSpecError(
        "must not be used with a source that is read with a journal: its micro-batches must be in the "
        "offset log before they run. Leave it out",
        field="asyncProgressTrackingEnabled",
    )


def _newest(log: Path) -> list[Any] | None:
    """Offsets of the newest entry; None if there is none that can be read here."""
    try:
        numbers = [int(path.name) for path in log.iterdir() if path.name.isdigit()]
        lines = (log / str(max(numbers))).read_text(encoding="utf-8").splitlines()
        if lines[0] != _VERSION:
            return None
        return [json.loads(line) for line in lines[2:] if line != _NOTHING]
    except (OSError, ValueError, IndexError):
        return None
