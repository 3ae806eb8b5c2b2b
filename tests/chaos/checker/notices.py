"""What the product has said about records that are gone: a partition, and a range of offsets.

A notice counts when one line names the topic, and then a partition with a range: ``partition 3 from
offset 120 to 169`` (both are gone) or ``partition 3 from offset 120 on``. Further partitions may
follow in the same line, up to the next topic.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

_RANGE: Final = re.compile(r"partition (\d+) from offset (\d+) (?:to (\d+)|on)")
_TOPIC: Final = re.compile(r"\btopic \S+ (?:\(id [^)]+\) )?(?:was|partition)\b")
"""Where something is said of another topic."""
_FOREVER: Final = 2**63 - 1


class Notice(NamedTuple):
    """One range of one partition that the product has named."""

    topic: str
    partition: int
    first: int
    end: int
    topic_id: str | None = None

    def excuses(self, topic: str, topic_id: str, partition: int, offset: int) -> bool:
        """Return whether a record lies in it.

        A notice without an id may mean any topic of the name.
        """
        is_here = (topic, partition) == (self.topic, self.partition) and self.topic_id in (
            None,
            topic_id,
        )
        return is_here and self.first <= offset < self.end


def notices(logs: Path, partitions: Iterable[tuple[str, int]]) -> list[Notice]:
    """Return what all log files in a folder say about some partitions."""
    names = sorted(set(partitions))
    text = [
        line
        for file in sorted(logs.glob("*.log"))
        for line in file.read_text(errors="replace").splitlines()
    ]
    return [
        notice
        for topic, number in names
        for line in text
        for notice in _in_line(line, topic, number)
    ]


def _in_line(line: str, topic: str, partition: int) -> Iterator[Notice]:
    for named in re.finditer(rf"(?<![\w.-]){re.escape(topic)}(?![\w-])(?: \(id ([^)]+)\))?", line):
        other = _TOPIC.search(line, named.end())
        for found in _RANGE.finditer(line, named.end(), other.start() if other else len(line)):
            if int(found[1]) == partition:
                end = int(found[3]) + 1 if found[3] else _FOREVER
                yield Notice(topic, partition, int(found[2]), end, named[1])
