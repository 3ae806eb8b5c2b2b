"""The report: what a reader host holds and how far it is. One writer: the host's driver."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from balanced_source.api import Json, Position, Problem, SplitId
from balanced_source.documents import columns, envelope
from balanced_source.documents.alignment import SourceWatermark, source_from_json, source_to_json
from balanced_source.documents.assignment import NumberedEvent, decode_events, encode_events
from balanced_source.documents.calls import CallAnswer, decode_answers, encode_answers
from balanced_source.errors import CorruptDocumentError

_MOST: Final = 2**63 - 1
"""Records: what a position can be, and a status can hold."""

UNREAD: Final = "unread"
"""Metric: records that were not read yet when the newest micro-batch began, with those that it
reads. `lag` is without them, so it stays small while an overloaded source reads ever larger
micro-batches."""

UNREAD_AT: Final = "unreadAt"
"""Metric: when the driver looked how many records are unread, in seconds since the epoch. Absent
while there are none: a report that says nothing else than the one before must not differ."""

MICRO_BATCHES: Final = "microBatches"
"""Metric: micro-batches that have ended since the driver started, but the first one, in which
executors start. Absent while there are none."""

MICRO_BATCH_SECONDS: Final = "microBatchSeconds"
"""Metric: seconds from the begin of each of these until Spark asked for the next one. That is the
trigger interval, or longer if a micro-batch takes longer than that."""

LATE_SECONDS: Final = "lateMicroBatchSeconds"
"""Metric: those seconds of micro-batches that took longer than the trigger interval, so that none
of that time was spent in waiting for the trigger. Absent while the interval is not known."""

POSITIONS_AT: Final = "positionsAt"
"""Metric: when the micro-batch ended whose end the positions are, in seconds since the epoch. The
driver looks for new records later, too, and reports later still. Absent before the first one."""

ADMITTED: Final = "admitted"
"""Metric: those of `unread` that an alignment in event time lets be read now. Absent if splits are
not aligned."""

SKIPPED_GAPS: Final = "skippedGaps"
"""Metric: how often records were gone before they were read, and were skipped; since the driver
started. For sources that do not know how many records that were. Absent while it is 0."""

MILLIS_BEHIND: Final = "millisBehind"
"""Metric: milliseconds by which the slowest split is behind its newest record, for sources that do
not count records. Absent while that of any split is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """State of one reader host, complete at any time.

    Registration, acknowledgement and progress in one.

    Attributes:
        host: which of the source's hosts; "0" when there is one.
        incarnation: number of this driver attempt; taken once, one more than any seen before.
        instance: random id of the attempt, to tell two that took the same number at once. Empty in
            the last report of a driver that ended in order: it has given up its claim.
        lineage: newest that the host has seen in an assignment; from then on it adopts nothing of
            an older one.
        sequence: grows with each report of this incarnation; older ones are ignored.
        epoch: epoch that the host's stream offset holds, durably. Before the first adoption of this
            incarnation it is the epoch restored from the Spark checkpoint (0: none); afterwards it
            is the acknowledgement.
        parallelism: number of readers in that epoch.
        owners: split → subtask as adopted.
        positions: split → committed position, for every split that the host holds.
        retained: split → position of revoked splits that the host keeps for a return.
        attributes: what readers must know of these splits besides their position (where to stop),
            so that nothing is missing should the enumerator state be lost; only where there is
            anything.
        lag: records not yet read, of all splits, with those of the running micro-batch; None while
            unknown.
        heartbeat: seconds since the epoch when this was written.
        location: host name of the driver.
        zone: its availability zone; empty if it is unknown. Older operators ignore it.
        events: custom events to the enumerator that are not acknowledged yet.
        events_seen: number of the last custom event received from the enumerator.
        metrics: further numbers for people (skew, lag per split or per reader: see
            `documents.lags`); JSON.
        alignment: how far the host is in event time; of sources in an alignment group only.
        problems: current problems that the driver has found.
        requests: subtask → splits that the host asks for on its behalf, beyond those in
            `positions`. Not a message but a level: it stands in every report until the splits have
            come or the reader is told that there are no more.
        answers: to the calls that the newest assignment asks for, see `documents.calls`.
        hosts: names of the hosts that may hold splits in `epoch`, with this one; empty if it is the
            only one. Should the enumerator state be lost, this tells which others to wait for.
            Older operators ignore it.
        former: last report of the driver before this one, if the Spark checkpoint of this one does
            not know the epoch in it. The operator may not have stored what it said, and a host has
            one report document. Repeated until this driver has adopted an epoch. It has no
            `former` itself. Older operators ignore it.
    """

    host: str = "0"
    incarnation: int
    instance: str = ""
    lineage: int = 1
    sequence: int = 0
    epoch: int = 0
    parallelism: int = 0
    owners: Mapping[SplitId, int] = field(default_factory=dict)
    positions: Mapping[SplitId, Position] = field(default_factory=dict)
    retained: Mapping[SplitId, Position] = field(default_factory=dict)
    attributes: Mapping[SplitId, Mapping[str, Json]] = field(default_factory=dict)
    lag: int | None = None
    heartbeat: float = 0.0
    location: str = ""
    zone: str = ""
    events: tuple[NumberedEvent, ...] = ()
    events_seen: int = 0
    metrics: Mapping[str, Json] = field(default_factory=dict)
    alignment: SourceWatermark | None = None
    problems: tuple[Problem, ...] = ()
    requests: Mapping[int, int] = field(default_factory=dict)
    answers: tuple[CallAnswer, ...] = ()
    hosts: tuple[str, ...] = ()
    former: "HostReport | None" = None


def upgrade_1(body: Json) -> Json:
    """Version 2 added attributes."""
    return {**body, "attributes": []}


def _upgrade_2(body: Json) -> Json:
    """Version 3 added alignment, which may be absent."""
    return body


def _upgrade_3(body: Json) -> Json:
    """Version 4 added problems, which may be absent."""
    return body


def _upgrade_4(body: Json) -> Json:
    """Version 5 added requests, which may be absent."""
    return body


def _upgrade_5(body: Json) -> Json:
    """Version 6 added answers, which may be absent."""
    return body


KIND: Final = envelope.DocumentKind(
    name="HostReport",
    version=6,
    upgrades={1: upgrade_1, 2: _upgrade_2, 3: _upgrade_3, 4: _upgrade_4, 5: _upgrade_5},
)


def encode(report: HostReport, *, source: str) -> str:
    """The document of a report."""
    return envelope.encode(KIND, source, to_json(report), version=_version(report))


def _version(report: HostReport) -> int:
    """Return the lowest version that can hold the report, so that older operators can read it."""
    if report.answers:
        return 6
    if report.requests:
        return 5
    if report.problems:
        return 4
    return 3 if report.alignment is not None else 2


def decode(text: str, *, source: str | None = None) -> HostReport:
    """Read a report of any version.

    Raises:
        CorruptDocumentError, IncompatibleVersionError: see `envelope.decode`.
    """
    return envelope.parse_body(KIND, envelope.decode(KIND, text, source=source), from_json)


def millis_behind(reports: Iterable[HostReport]) -> int | None:
    """Return by how many milliseconds the slowest split of some hosts is behind.

    None while that of any is unknown.
    """
    found = [report.metrics.get(MILLIS_BEHIND) for report in reports if report.owners]
    known = [millis for millis in found if type(millis) is int]
    return max(known) if known and len(known) == len(found) else None


def records_behind(reports: Iterable[HostReport | None]) -> int | None:
    """Return the lag of hosts together, in records.

    None while it is unknown, because a host has not reported or does not know its lag, or because
    there is no host. A sum over some of the hosts would look as if the source had caught up.
    """
    lags = [None if report is None else report.lag for report in reports]
    known = [lag for lag in lags if lag is not None]
    return sum(known) if known and len(known) == len(lags) else None


def seconds_behind(reports: Iterable[HostReport]) -> int | None:
    """Return `millis_behind` in seconds, rounded up: 0 says that everything is read."""
    millis = millis_behind(reports)
    return None if millis is None else -(-millis // 1000)


def to_json(report: HostReport) -> dict[str, Json]:
    """The report as JSON.

    Also part of the enumerator's state while a report waits behind the recovery gate.
    """
    # Most tables have the same splits.
    encode_map = columns.TableEncoder()
    return {
        "host": report.host,
        "incarnation": report.incarnation,
        "instance": report.instance,
        "lineage": report.lineage,
        "sequence": report.sequence,
        "epoch": report.epoch,
        "parallelism": report.parallelism,
        "owners": encode_map(report.owners),
        "positions": encode_map(report.positions),
        "retained": encode_map(report.retained),
        "attributes": encode_map(report.attributes),
        "lag": report.lag,
        "heartbeat": report.heartbeat,
        "location": report.location,
        **({"zone": report.zone} if report.zone else {}),
        "events": encode_events(report.events),
        "eventsSeen": report.events_seen,
        "metrics": dict(report.metrics),
        **({"alignment": source_to_json(report.alignment)} if report.alignment is not None else {}),
        **(
            {"problems": [_problem_to_json(problem) for problem in report.problems]}
            if report.problems
            else {}
        ),
        **(
            {"requests": [[subtask, count] for subtask, count in sorted(report.requests.items())]}
            if report.requests
            else {}
        ),
        **({"answers": encode_answers(report.answers)} if report.answers else {}),
        **({"hosts": list(report.hosts)} if report.hosts else {}),
        **({"former": to_json(report.former)} if report.former is not None else {}),
    }


def from_json(body: dict[str, Any]) -> HostReport:
    """Inverse of `to_json`."""
    return HostReport(
        host=str(body["host"]),
        incarnation=int(body["incarnation"]),
        instance=str(body["instance"]),
        lineage=int(body["lineage"]),
        sequence=int(body["sequence"]),
        epoch=int(body["epoch"]),
        parallelism=int(body["parallelism"]),
        owners=columns.checked_values(columns.decode_map(body["owners"]), int),
        positions=_checked(columns.decode_map(body["positions"])),
        retained=_checked(columns.decode_map(body["retained"])),
        attributes=columns.checked_values(columns.decode_map(body["attributes"]), dict),
        lag=count_of(body["lag"]),
        heartbeat=float(body["heartbeat"]),
        location=str(body["location"]),
        zone=str(body.get("zone", "")),
        events=decode_events(body["events"]),
        events_seen=int(body["eventsSeen"]),
        metrics=dict(body["metrics"]),
        alignment=source_from_json(body["alignment"]) if "alignment" in body else None,
        problems=tuple(_problem_from_json(problem) for problem in body.get("problems", ())),
        requests={int(subtask): int(count) for subtask, count in body.get("requests", ())},
        answers=decode_answers(body.get("answers", ())),
        hosts=tuple(map(str, body.get("hosts", ()))),
        former=replace(from_json(body["former"]), former=None) if "former" in body else None,
    )


def count_of(value: object) -> int | None:
    """Return a number of records; None, which is unknown, for anything else."""
    return value if type(value) is int and 0 <= value <= _MOST else None


def _checked(positions: dict[SplitId, Position]) -> dict[SplitId, Position]:
    """Return positions if all of them are: they are compared and counted wherever they come."""
    if all(position is None or type(position) is int for position in positions.values()):
        return positions
    raise CorruptDocumentError("malformed table of splits: not every position is a number")


def _problem_to_json(problem: Problem) -> dict[str, Json]:
    return {
        "reason": problem.reason,
        "message": problem.message,
        "scope": problem.scope,
        "isFatal": problem.is_fatal,
    }


def _problem_from_json(body: dict[str, Any]) -> Problem:
    return Problem(
        reason=str(body["reason"]),
        message=str(body["message"]),
        scope=str(body["scope"]),
        is_fatal=bool(body["isFatal"]),
    )
