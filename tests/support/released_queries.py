"""Queries of former releases, as they left their folders when their driver died.

A golden file holds the Spark checkpoint of a real query, the documents of its source if it had any,
and what its sink had got by then. It was written once, by that release.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from balanced_source.documents import envelope
from support.golden_files import FOLDER

TOPIC: Final = "orders"
"""What every one of them read."""

Delivered = Counter[tuple[int, int]]
"""Partition and offset → how often."""


@dataclass(frozen=True)
class ReleasedQuery:
    """See the module.

    Attributes:
        files: path in its folder → text.
        topic_id: of the topic that it has read.
        delivered: what was delivered in micro-batches that it had committed.
    """

    files: Mapping[str, str]
    topic_id: str
    delivered: Delivered

    @property
    def unfinished(self) -> int:
        """Number of the micro-batch that is logged, and not committed."""
        logged = [int(path.split("/")[-1]) for path in self.files if "/offsets/" in path]
        return max(logged)

    def put(self, folder: Path, topic_id: str) -> None:
        """Write its folder, as if it had read the topic with this id."""
        for path, text in self.files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_signed(text.replace(self.topic_id, topic_id)))


def released(release: str, which: str) -> ReleasedQuery:
    """Return a query of a release."""
    text = (FOLDER / f"query-{release}-{which}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    rows = [row for rows in found["delivered"].values() for row in rows]
    return ReleasedQuery(
        files=found["files"],
        topic_id=found["topicId"],
        delivered=Counter((row[0], row[1]) for row in rows),
    )


def _signed(text: str) -> str:
    """A document with the digest of what it says now; all other files as they are."""
    first, _, _ = text.partition("\n")
    if not first.startswith('{"body":'):
        return text
    content = json.loads(first)
    del content["digest"]
    return json.dumps({**content, "digest": envelope.digest(content)})
