"""The journal: where each reader stopped in a micro-batch, for sources whose ends are not known when it is planned.

A record is written once and never changes. Its key is the journal, the number of the micro-batch and the reader. What
it holds is what was read, so every further attempt at the same task reads the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from balanced_source.api import Json, Position, SplitId
from balanced_source.documents import columns, envelope
from balanced_source.errors import CorruptDocumentError

KIND: Final = envelope.Kind(name="journal-record", version=1, upgrades={})


class RecordKey(NamedTuple):
    """Names a record.

    Attributes:
        journal: id of the journal: of one Spark checkpoint.
        number: of the micro-batch, as the stream offset counts them.
        reader: the subtask.
    """

    journal: str
    number: int
    reader: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRecord:
    """What one reader has read in one micro-batch.

    Attributes:
        key: see `RecordKey`.
        starts: where it began, for the splits of which it has read something.
        ends: where it stopped, for the same splits.
        finished: splits that are read to their end.
        has_more: whether the reader stopped at a limit, so that the next micro-batch has something to read.
    """

    key: RecordKey
    starts: Mapping[SplitId, Position] = field(default_factory=dict)
    ends: Mapping[SplitId, Position] = field(default_factory=dict)
    finished: frozenset[SplitId] = frozenset()
    has_more: bool = False


def encode(record: JournalRecord, *, source: str) -> str:
    """Return the text of a record; equal records give equal text."""
    body: dict[str, Json] = {
        "key": list(record.key),
        "starts": columns.encode_map(record.starts),
        "ends": columns.encode_map(record.ends),
        "finished": columns.encode_ids(record.finished),
        "hasMore": record.has_more,
    }
    return envelope.encode(KIND, source, body)


def decode(text: str, *, source: str, key: RecordKey) -> JournalRecord:
    """Return the record with this key.

    Raises:
        CorruptDocumentError: no record, one of another source, or one with another key.
        IncompatibleVersionError: newer software wrote it.
    """
    record = envelope.parse_body(KIND, envelope.decode(KIND, text, source=source), _from_body)
    if record.key != key:
        raise CorruptDocumentError(f"{KIND.name}: the record of {tuple(record.key)} lies where {tuple(key)} belongs")
    return record


def _from_body(body: Any) -> JournalRecord:
    journal, number, reader = body["key"]
    return JournalRecord(
        key=RecordKey(str(journal), int(number), int(reader)),
        starts=columns.decode_map(body["starts"]),
        ends=columns.decode_map(body["ends"]),
        finished=columns.decode_ids(body["finished"]),
        has_more=bool(body["hasMore"]),
    )
