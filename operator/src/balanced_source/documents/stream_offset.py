"""The stream offset: what Spark writes into its offset log for each micro-batch.

Planning a micro-batch depends on its start and end offset alone, so that a replay after a crash
reads exactly the same ranges with the same owners, whatever was assigned meanwhile. Hence owners,
parallelism and epoch are in it, and the start of every split that this micro-batch reads for the
first time.

It is no stored document of ours (Spark stores it, and compares it as text), so it has a version but
no digest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from balanced_source.api import STOP, Json, Position, SplitId
from balanced_source.documents import columns, envelope
from balanced_source.documents.journal import JournalPoint, point_from_json, point_to_json
from balanced_source.errors import CorruptDocumentError, IncompatibleVersionError

VERSION: Final = 7
"""Version 2 added attributes, version 3 `maxRecordsPerReader`, version 4 `source`, version 5
`terms`, version 6 `journal`, version 7 `termEnds`."""

_WITHOUT_TERM_ENDS: Final = 6
_WITHOUT_JOURNAL: Final = 5
_WITHOUT_TERMS: Final = 4
_WITHOUT_SOURCE: Final = 3

STATE_DIR: Final = "stateDir"
"""Stands for a source in offsets of a query that keeps the state of its enumerator in a folder:
without that, nothing says which splits were read."""

FINISHED: Final = "finished"
"""Member of the offset of a closing micro-batch; left out elsewhere.

`StopWhenFinished` looks for it.
"""


class TermEnd(NamedTuple):
    """Says where the records of a leadership end in the log of a split.

    Attributes:
        term: number of the leadership.
        end: first position that was written under a later one; no record before it was.
    """

    term: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOffset:
    """Positions of all splits that a reader host holds, and who reads them.

    Attributes:
        epoch: of the assignment in effect; 0 before the first.
        parallelism: number of readers in that epoch, of all hosts together.
        readers: the ones that run on this host; each micro-batch has a task for each of them.
        owners: split → subtask.
        positions: split → first record that is not read yet. With a `journal`: before this
            micro-batch; what it has read is in the journal.
        starts: splits that were not held before this micro-batch → where it starts to read them.
        retained: revoked splits → position to continue from if they return.
        attributes: what readers must know of all these splits besides their position; only where
            there is anything.
        max_records_per_reader: whether and from how many records on a reader's surplus is read by
            others in this micro-batch, see `host.cutting`; None: never.
        closings: 0 while there is something to read. The micro-batch after the last record of a
            bounded source has 1: it is empty, and its progress ends the query. Each restart after
            that adds 1.
        source: namespace and name of the BalancedSource that the checkpoint belongs to; or
            `STATE_DIR`; empty without either, and in offsets of older versions.
        terms: split → number of the leadership under which its position was the end of its log, or
            before it; it grows whenever the tail of the log may have been lost. Left out where
            servers do not say, and of splits that were not read yet. Of retained splits, too.
        term_ends: split → where the records of former leaderships end in the log that was read,
            oldest first. With it a cut is found exactly after several changes of the leader, see
            `host.log_check`. Left out of splits whose leader did not change.
        journal: where the ends of this micro-batch are; None for sources whose ends are known when
            it is planned.
        hosts: names of the hosts that may hold splits in that epoch, this one among them; empty if
            it is the only one. Should all documents be lost, no one else knows that there are
            others. Drivers of older versions ignore it.
    """

    epoch: int = 0
    parallelism: int = 0
    readers: tuple[int, ...] = ()
    owners: Mapping[SplitId, int] = field(default_factory=dict)
    positions: Mapping[SplitId, Position] = field(default_factory=dict)
    starts: Mapping[SplitId, Position] = field(default_factory=dict)
    retained: Mapping[SplitId, Position] = field(default_factory=dict)
    attributes: Mapping[SplitId, Mapping[str, Json]] = field(default_factory=dict)
    max_records_per_reader: int | None = None
    closings: int = 0
    source: str = ""
    terms: Mapping[SplitId, int] = field(default_factory=dict)
    term_ends: Mapping[SplitId, tuple[TermEnd, ...]] = field(default_factory=dict)
    journal: JournalPoint | None = None
    hosts: tuple[str, ...] = ()

    def stop_of(self, split_id: SplitId) -> int | None:
        """Return where a split ends for good; None if it has no end, or none that is known."""
        stop = self.attributes.get(split_id, {}).get(STOP)
        return None if stop is None else int(stop)


def to_json(
    offset: StreamOffset, *, encode_map: columns.EncodeMap = columns.encode_map
) -> dict[str, Json]:
    """For Spark; equal offsets give equal text. Written in the oldest version that can say it."""
    # What says nothing is left out, so that a driver of an older version can read the offset.
    closings: dict[str, Json] = {FINISHED: offset.closings} if offset.closings else {}
    source: dict[str, Json] = {"source": offset.source} if offset.source else {}
    terms: dict[str, Json] = {"terms": encode_map(offset.terms)} if offset.terms else {}
    journal: dict[str, Json] = {"journal": point_to_json(offset.journal)} if offset.journal else {}
    past = {s: [list(end) for end in ends] for s, ends in offset.term_ends.items() if ends}
    term_ends: dict[str, Json] = {"termEnds": encode_map(past)} if past else {}
    hosts: dict[str, Json] = {"hosts": list(offset.hosts)} if offset.hosts else {}
    return {
        "version": _version(offset),
        "epoch": offset.epoch,
        "parallelism": offset.parallelism,
        "readers": list(offset.readers),
        "positions": encode_map(offset.positions),
        "owners": encode_map(offset.owners),
        "starts": encode_map(offset.starts),
        "retained": encode_map(offset.retained),
        "attributes": encode_map(offset.attributes),
        "maxRecordsPerReader": offset.max_records_per_reader,
        **closings,
        **source,
        **terms,
        **journal,
        **term_ends,
        **hosts,
    }


def _version(offset: StreamOffset) -> int:
    # The oldest version that can say it: a downgrade continues wherever nothing newer is needed.
    if any(offset.term_ends.values()):
        return VERSION
    if offset.journal is not None:
        return _WITHOUT_TERM_ENDS
    if offset.terms:
        return _WITHOUT_JOURNAL
    return _WITHOUT_TERMS if offset.source else _WITHOUT_SOURCE


def from_json(data: Mapping[str, Any]) -> StreamOffset:
    """Read an offset of any version.

    Raises:
        IncompatibleVersionError: the checkpoint was written by newer software.
        CorruptDocumentError: no stream offset of ours.
    """
    try:
        version = int(data["version"])
        # Guessing what newer software meant would lose or repeat records.
        if version > VERSION:
            raise IncompatibleVersionError("the stream offset", found=version, supported=VERSION)
        return StreamOffset(
            epoch=int(data["epoch"]),
            parallelism=int(data["parallelism"]),
            readers=tuple(data["readers"]),
            owners=columns.decode_map(data["owners"]),
            positions=columns.decode_map(data["positions"]),
            starts=columns.decode_map(data["starts"]),
            retained=columns.decode_map(data["retained"]),
            attributes=columns.decode_map(data["attributes"]) if version > 1 else {},
            max_records_per_reader=data.get("maxRecordsPerReader"),
            closings=int(data.get(FINISHED, 0)),  # version 0.1.0 wrote `true`
            source=str(data.get("source", "")),
            terms=columns.decode_map(data.get("terms", [])),
            term_ends=_term_ends_from_json(data["termEnds"])
            if version > _WITHOUT_TERM_ENDS
            else {},
            journal=_journal_from_json(data, version),
            hosts=tuple(map(str, data.get("hosts", ()))),
        )
    except envelope.MALFORMED as error:
        raise CorruptDocumentError(f"no stream offset of this source: {error!r}") from error


def _journal_from_json(data: Mapping[str, Any], version: int) -> JournalPoint | None:
    is_named = "journal" in data if version > _WITHOUT_TERM_ENDS else version > _WITHOUT_JOURNAL
    return point_from_json(data["journal"]) if is_named else None


def _term_ends_from_json(rows: Json) -> dict[SplitId, tuple[TermEnd, ...]]:
    return {
        split_id: tuple(TermEnd(term=int(term), end=int(end)) for term, end in ends)
        for split_id, ends in columns.decode_map(rows).items()
    }
