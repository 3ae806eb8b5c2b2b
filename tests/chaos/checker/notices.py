"""What the product has said about records that are gone: a partition, and a range of offsets.

A notice counts when one line names the topic, and then a partition with a range: ``partition 3 from offset 120 to 169``
(both are gone) or ``partition 3 from offset 120 on``. Further partitions may follow in the same line.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

_RANGE: Final = re.compile(r"partition (\d+) from offset (\d+) (?:to (\d+)|on)")
_FOREVER: Final = 2**63 - 1


class Notice(NamedTuple):
    """One range of one partition that the product has named."""

    topic: str
    partition: int
    first: int
    end: int

    def excuses(self, topic: str, partition: int, offset: int) -> bool:
        """Return whether a record lies in it."""
        return (topic, partition) == (self.topic, self.partition) and self.first <= offset < self.end


def notices(logs: Path, partitions: Iterable[tuple[str, int]]) -> list[Notice]:
    """Return what all log files in a folder say about some partitions."""
    names = sorted(set(partitions))
    text = [line for file in sorted(logs.glob("*.log")) for line in file.read_text(errors="replace").splitlines()]
    return [notice for topic, number in names for line in text for notice in _in_line(line, topic, number)]


def _in_line(line: str, topic: str, partition: int) -> Iterator[Notice]:
    named = re.search(rf"(?<![\w.-]){re.escape(topic)}(?![\w-])", line)
    for found in _RANGE.finditer(line, named.end()) if named else ():
        if int(found[1]) == partition:
            yield Notice(topic, partition, int(found[2]), int(found[3]) + 1 if found[3] else _FOREVER)
