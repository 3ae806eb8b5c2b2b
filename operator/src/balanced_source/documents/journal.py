"""The journal: where each reader stopped in a micro-batch whose ends were unknown when planned.

A record is written once and never changes. Its key is the journal, the number of the micro-batch
and the reader. What it holds is what was read, so every further attempt at the same task reads the
same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from balanced_source.api import Json, Position, SplitId
from balanced_source.documents import columns, envelope
from balanced_source.errors import CorruptDocumentError

KIND: Final = envelope.DocumentKind(name="journal-record", version=1, upgrades={})


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
        has_more: whether the reader stopped at a limit, so that the next micro-batch has something
            to read.
        records: how many it has read; reading the range again must give as many.
        behind: how far splits were behind their newest record after that, in milliseconds; see
            `balanced_source.api.SourceReader.millis_behind`.
        times: how far in time each split is, in milliseconds since the epoch: the newest time that
            was read, or the time of what was kept back; only where splits are aligned.
        read_up_to: splits that did not move → see `balanced_source.api.READ_UP_TO`; only what is
            new.
        gaps: split → how often records of it were gone and were skipped, see
            `balanced_source.api.SourceReader.skipped_gaps`.
    """

    key: RecordKey
    starts: Mapping[SplitId, Position] = field(default_factory=dict)
    ends: Mapping[SplitId, Position] = field(default_factory=dict)
    finished: frozenset[SplitId] = frozenset()
    has_more: bool = False
    records: int = 0
    behind: Mapping[SplitId, int] = field(default_factory=dict)
    times: Mapping[SplitId, int] = field(default_factory=dict)
    read_up_to: Mapping[SplitId, int] = field(default_factory=dict)
    gaps: Mapping[SplitId, int] = field(default_factory=dict)


Targets: TypeAlias = Mapping[SplitId, Position]
"""Split → position at which a query that ends by itself stops reading it.

Other splits are not read.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """How much one reader fetches in one micro-batch before it seals its range.

    Attributes:
        max_records: records at most; None: no limit.
        max_bytes: bytes of rows at most; None: no limit.
        max_millis: longest time of fetching, in milliseconds; None: no limit.
        wait_millis: a reader is caught up when nothing has come for so many milliseconds.
    """

    max_records: int | None = None
    max_bytes: int | None = None
    max_millis: int | None = None
    wait_millis: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """How a micro-batch is aligned in event time, see `balanced_source.host.pausing`.

    Attributes:
        beyond: records beyond this time are kept back; milliseconds since the epoch.
        splits: those that are beyond it.
    """

    beyond: int
    splits: frozenset[SplitId] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalPoint:
    """Where a stream offset is in its journal.

    Attributes:
        journal: id of the journal: of one Spark checkpoint.
        number: of the micro-batch that the offset ends. It grows by one with each micro-batch of
            this source.
        limits: of each reader in this micro-batch.
        targets: see `Targets`; None in a query that does not end by itself, or without known ends.
        finished: splits that were read to their end before this micro-batch.
        held: splits that are not read in this micro-batch, because the source has others under
            their ids now, or none.
        pause: what waits for slower splits; None: splits are not aligned.
        read_up_to: splits → see `balanced_source.api.READ_UP_TO`; of their positions before this
            micro-batch.
    """

    journal: str
    number: int
    limits: FetchLimits = field(default_factory=FetchLimits)
    targets: Targets | None = None
    finished: frozenset[SplitId] = frozenset()
    held: frozenset[SplitId] = frozenset()
    pause: Pause | None = None
    read_up_to: Mapping[SplitId, int] = field(default_factory=dict)

    @property
    def left_out(self) -> frozenset[SplitId]:
        """Splits that no task of this micro-batch reads, whatever their targets are."""
        return self.finished | self.held


def point_to_json(point: JournalPoint) -> Json:
    """Return the JSON value of a point; equal points give equal text."""
    limits = point.limits
    return {
        "id": point.journal,
        "number": point.number,
        "limits": [limits.max_records, limits.max_bytes, limits.max_millis, limits.wait_millis],
        "targets": None if point.targets is None else columns.encode_map(point.targets),
        "finished": columns.encode_ids(point.finished),
        # Rare, and a release that does not know it would only read these splits.
        **({"held": columns.encode_ids(point.held)} if point.held else {}),
        # A release that does not know it reads on as if nothing were aligned.
        **({"pause": _pause_to_json(point.pause)} if point.pause is not None else {}),
        # A release that does not know it cannot tell a quiet split from one that lost records.
        **({"readUpTo": columns.encode_map(point.read_up_to)} if point.read_up_to else {}),
    }


def _pause_to_json(pause: Pause) -> Json:
    return [pause.beyond, columns.encode_ids(pause.splits)]


def _pause_from_json(data: Any) -> Pause:
    beyond, split_ids = data
    return Pause(beyond=int(beyond), splits=columns.decode_ids(split_ids))


def point_from_json(data: Any) -> JournalPoint:
    """Inverse of `point_to_json`; raises what malformed data raise."""
    records, size, millis, wait = data["limits"]
    targets = data["targets"]
    return JournalPoint(
        journal=str(data["id"]),
        number=int(data["number"]),
        limits=FetchLimits(
            max_records=records, max_bytes=size, max_millis=millis, wait_millis=int(wait)
        ),
        targets=None if targets is None else columns.decode_map(targets),
        finished=columns.decode_ids(data["finished"]),
        held=columns.decode_ids(data["held"]) if "held" in data else frozenset(),
        pause=_pause_from_json(data["pause"]) if "pause" in data else None,
        read_up_to=_whole_numbers(data, "readUpTo"),
    )


def encode(record: JournalRecord, *, source: str) -> str:
    """Return the text of a record; equal records give equal text."""
    body: dict[str, Json] = {
        "key": list(record.key),
        "starts": columns.encode_map(record.starts),
        "ends": columns.encode_map(record.ends),
        "finished": columns.encode_ids(record.finished),
        "hasMore": record.has_more,
        "records": record.records,
        **({"behind": columns.encode_map(record.behind)} if record.behind else {}),
        **({"times": columns.encode_map(record.times)} if record.times else {}),
        **({"readUpTo": columns.encode_map(record.read_up_to)} if record.read_up_to else {}),
        **({"gaps": columns.encode_map(record.gaps)} if record.gaps else {}),
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
        raise CorruptDocumentError(
            f"{KIND.name}: the record of {tuple(record.key)} lies where {tuple(key)} belongs"
        )
    return record


def _from_body(body: Any) -> JournalRecord:
    journal, number, reader = body["key"]
    return JournalRecord(
        key=RecordKey(str(journal), int(number), int(reader)),
        starts=columns.decode_map(body["starts"]),
        ends=columns.decode_map(body["ends"]),
        finished=columns.decode_ids(body["finished"]),
        has_more=bool(body["hasMore"]),
        records=int(body["records"]),
        behind=_whole_numbers(body, "behind"),
        times=_whole_numbers(body, "times"),
        read_up_to=_whole_numbers(body, "readUpTo"),
        gaps=_whole_numbers(body, "gaps"),
    )


def _whole_numbers(body: Any, name: str) -> dict[SplitId, int]:
    return columns.checked_values(columns.decode_map(body[name]), int) if name in body else {}
