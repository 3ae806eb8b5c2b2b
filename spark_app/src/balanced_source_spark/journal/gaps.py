"""Counts the gaps that tasks have met and skipped, in the planning process."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from balanced_source.api import SplitId
from balanced_source.documents.journal import JournalRecord
from balanced_source.documents.report import SKIPPED_GAPS
from balanced_source.names import first_of, split_name
from balanced_source_adapters.lazy_log import get_logger

log = get_logger(__name__)

SHOWN: Final = 5
"""Names of splits in a line of the log."""


class GapCounter:
    """Gaps since the process started; see `balanced_source.api.SourceReader.skipped_gaps`."""

    def __init__(self) -> None:
        self._total = 0

    def note(self, records: Iterable[JournalRecord]) -> None:
        """Count the gaps of a micro-batch that is done, and log them."""
        found = Counter[SplitId]()
        for record in records:
            found.update(record.gaps)
        if found:
            self._total += found.total()
            log.warning(
                "records were gone before they were read, and are skipped; the executors' logs"
                " say more",
                splits=first_of(sorted(found), SHOWN, name=split_name),
            )

    def numbers(self) -> Mapping[str, int]:
        """Return the total for the report, if there is any."""
        return {SKIPPED_GAPS: self._total} if self._total else {}
