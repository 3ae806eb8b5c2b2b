"""What journals in folders and in object stores have in common.

How records are named, and what is missing.
"""

from collections.abc import Iterable
from typing import Final

from balanced_source.documents.journal import RecordKey
from balanced_source.errors import ForeignJournalError
from balanced_source.names import checked_label

SUFFIX: Final = ".json"
MARKER: Final = "JOURNAL"
"""Name of the file that says: the driver has made this journal."""

OFFSETS: Final = "offsets"
"""Name of the folder of Spark's offset log in a checkpoint."""


def home_of(journal: str) -> str:
    """Return the name of a journal's folder.

    Raises:
        InvalidSpecError: the journal's name is none that a path may hold.
    """
    return checked_label(journal, field="journal")


def name_of(key: RecordKey) -> str:
    """Return the name of a record."""
    return f"{key.number}-{key.reader}{SUFFIX}"


def number_of(name: str) -> int:
    """Return the number of the micro-batch whose record has this name."""
    return int(name.split("-", 1)[0])


def newest_entry(names: Iterable[str]) -> str | None:
    """Return the name of the newest entry of a Spark log among the names of its folder.

    None if there is none.
    """
    return max((name for name in names if name.isdecimal()), key=int, default=None)


def entries(names: Iterable[str]) -> int:
    """Return how many entries a Spark log has, from the names of its folder."""
    return sum(name.isdecimal() for name in names)


def foreign(journal: str, location: str) -> ForeignJournalError:
    """Return the error of a journal that is not where it should be."""
    return ForeignJournalError(
        f"the Spark checkpoint of this query belongs to journal {journal}, which is not in"
        f" {location}: what its last micro-batch delivered is unknown. Set journalLocation to the"
        " place that the query had before, or restore that place"
    )
