"""The assignment: what the operator decided, for the reader hosts. One writer: the operator.

It is the whole picture, not an increment: a host that missed ten epochs reads the eleventh and is
right.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from balanced_source.api import Json, Position, SourceEvent, SplitId
from balanced_source.documents import columns, envelope
from balanced_source.documents.alignment import GroupWatermark, group_from_json, group_to_json
from balanced_source.documents.calls import WantedCall, decode_calls, encode_calls


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedEvent:
    """A custom event on its way.

    `number` grows by one per direction and host, and is acknowledged cumulatively.
    """

    number: int
    subtask_id: int
    event: SourceEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Who owns what from `epoch` on.

    Attributes:
        lineage: grows when the enumerator state was lost; a host that sees a new one reports again
            before it adopts anything, and takes nothing of an older one any more.
        epoch: grows by one at each published change.
        parallelism: number of readers, of all hosts together.
        incarnations: host → the incarnation that this is for; any other incarnation must not use
            it.
        idle_hosts: those of `incarnations` that run no readers: they join, or leave.
        owners: split → subtask. A split that is not here is pending, or not ours.
        starts: position of the splits that their host may not hold yet; see
            `balanced_source.host.adopt`.
        since: epoch in which each of these was assigned. A host whose offset is older has nothing
            to say about it: what it holds by that name is of former times (a topic that was
            recreated).
        attributes: what readers must know of a split besides its position; only where there is
            anything.
        retained: splits whose positions the hosts keep although they do not read them: for a
            return, and so that the stream offset alone could restore everything. An owned split is
            among them if its host may have read on after its last report: then what the host has
            counts, if it is the newer position.
        no_more_splits: readers that get no further split.
        events: custom events for readers that their host has not acknowledged yet.
        events_seen: host → number of the last custom event that was received from it.
        settings: how readers connect; without secrets.
        alignment: of sources in an alignment group only. It changes without a new epoch.
        undiscovered: scopes whose splits are missing in `owners`, because they have not answered
            yet. A query that ends by itself waits for them. It changes without a new epoch, and
            drivers of older images ignore it.
        look_ahead: splits that a host asks for on behalf of each of its readers, see
            `Source.look_ahead`; 0 if readers do not ask.
        report_within: seconds after which a host that could not report plans no further
            micro-batch, because others may get its splits; None if it continues. It changes without
            a new epoch.
        calls: what the operator asks a driver to call, see `documents.calls`. It changes without a
            new epoch.
        has_ending_splits: see `Source.has_ending_splits`; None if an older operator does not say.
            Drivers of older images ignore it.
    """

    lineage: int = 1
    epoch: int
    parallelism: int
    incarnations: Mapping[str, int] = field(default_factory=dict)
    idle_hosts: frozenset[str] = frozenset()
    owners: Mapping[SplitId, int] = field(default_factory=dict)
    starts: Mapping[SplitId, Position] = field(default_factory=dict)
    since: Mapping[SplitId, int] = field(default_factory=dict)
    attributes: Mapping[SplitId, Mapping[str, Json]] = field(default_factory=dict)
    retained: frozenset[SplitId] = frozenset()
    no_more_splits: frozenset[int] = frozenset()
    events: tuple[NumberedEvent, ...] = ()
    events_seen: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, Json] = field(default_factory=dict)
    alignment: GroupWatermark | None = None
    undiscovered: frozenset[str] = frozenset()
    look_ahead: int = 0
    report_within: float | None = None
    calls: tuple[WantedCall, ...] = ()
    has_ending_splits: bool | None = None


def _upgrade_1(body: Json) -> Json:
    """Version 2 added since."""
    started = columns.decode_map(body["starts"])
    return {**body, "since": columns.encode_map(dict.fromkeys(started, body["epoch"]))}


def _upgrade_2(body: Json) -> Json:
    """Version 3 added alignment, which may be absent."""
    return body


def _upgrade_3(body: Json) -> Json:
    """Version 4 added lookAhead, which may be absent."""
    return body


def _upgrade_4(body: Json) -> Json:
    """Version 5 added calls, which may be absent."""
    return body


def _upgrade_5(body: Json) -> Json:
    """Version 6 added idleHosts, which may be absent."""
    return body


KIND: Final = envelope.DocumentKind(
    name="Assignment",
    version=6,
    upgrades={1: _upgrade_1, 2: _upgrade_2, 3: _upgrade_3, 4: _upgrade_4, 5: _upgrade_5},
)


def encode(assignment: Assignment, *, source: str) -> str:
    """The document of an assignment."""
    return envelope.encode(KIND, source, to_json(assignment), version=version_of(assignment))


def version_of(assignment: Assignment) -> int:
    """The lowest version that can say it.

    Drivers of older images continue reading sources that need nothing newer.
    """
    # The newest need decides. A driver that ignored idle hosts would number its readers
    # differently.
    if assignment.idle_hosts:
        return 6
    if assignment.calls:
        return 5
    if assignment.look_ahead:
        return 4
    return 3 if assignment.alignment is not None else 2


def to_json(assignment: Assignment) -> dict[str, Json]:
    """The assignment as JSON."""
    # Most tables have the same splits.
    encode_map = columns.TableEncoder()
    return {
        "lineage": assignment.lineage,
        "epoch": assignment.epoch,
        "parallelism": assignment.parallelism,
        "incarnations": dict(assignment.incarnations),
        "owners": encode_map(assignment.owners),
        "starts": encode_map(assignment.starts),
        "since": encode_map(assignment.since),
        "attributes": encode_map(assignment.attributes),
        "retained": columns.encode_ids(assignment.retained),
        "noMoreSplits": sorted(assignment.no_more_splits),
        "events": encode_events(assignment.events),
        "eventsSeen": dict(assignment.events_seen),
        "settings": dict(assignment.settings),
        **(
            {"alignment": group_to_json(assignment.alignment)}
            if assignment.alignment is not None
            else {}
        ),
        **({"undiscovered": sorted(assignment.undiscovered)} if assignment.undiscovered else {}),
        **({"idleHosts": sorted(assignment.idle_hosts)} if assignment.idle_hosts else {}),
        **({"lookAhead": assignment.look_ahead} if assignment.look_ahead else {}),
        **(
            {"reportWithin": assignment.report_within}
            if assignment.report_within is not None
            else {}
        ),
        **({"calls": encode_calls(assignment.calls)} if assignment.calls else {}),
        **(
            {"endingSplits": assignment.has_ending_splits}
            if assignment.has_ending_splits is not None
            else {}
        ),
    }


def decode(text: str, *, source: str | None = None) -> Assignment:
    """Read an assignment of any version.

    Raises:
        CorruptDocumentError, IncompatibleVersionError: see `envelope.decode`.
    """
    return envelope.parse_body(KIND, envelope.decode(KIND, text, source=source), from_json)


def from_json(body: dict[str, Any]) -> Assignment:
    """Inverse of `to_json`."""
    return Assignment(
        lineage=int(body["lineage"]),
        epoch=int(body["epoch"]),
        parallelism=int(body["parallelism"]),
        incarnations=dict(body["incarnations"]),
        owners=columns.decode_map(body["owners"]),
        starts=columns.decode_map(body["starts"]),
        since=columns.decode_map(body["since"]),
        attributes=columns.decode_map(body["attributes"]),
        retained=columns.decode_ids(body["retained"]),
        no_more_splits=frozenset(body["noMoreSplits"]),
        events=decode_events(body["events"]),
        events_seen=dict(body["eventsSeen"]),
        settings=dict(body["settings"]),
        alignment=group_from_json(body["alignment"]) if "alignment" in body else None,
        undiscovered=frozenset(str(scope) for scope in body.get("undiscovered", ())),
        idle_hosts=frozenset(str(host) for host in body.get("idleHosts", ())),
        look_ahead=int(body.get("lookAhead", 0)),
        report_within=float(body["reportWithin"]) if "reportWithin" in body else None,
        calls=decode_calls(body.get("calls", ())),
        has_ending_splits=bool(body["endingSplits"]) if "endingSplits" in body else None,
    )


def encode_events(events: tuple[NumberedEvent, ...]) -> list[Json]:
    """Events as JSON rows."""
    return [[e.number, e.subtask_id, e.event.name, e.event.payload] for e in events]


def decode_events(rows: list[Any]) -> tuple[NumberedEvent, ...]:
    """Inverse of `encode_events`."""
    return tuple(
        NumberedEvent(
            number=number, subtask_id=subtask, event=SourceEvent(name=name, payload=payload)
        )
        for number, subtask, name, payload in rows
    )
