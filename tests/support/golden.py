"""Documents as each version wrote them: bytes that must stay readable forever.

``python -m support.golden`` writes the files of versions that have none yet; see
`support.golden_files`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from balanced_source.api import MIN_WATERMARK
from balanced_source.assigners import AssignerIdentity, HashAssigner, PerScopeAssigner
from balanced_source.connectors.discovery import DiscoveryState, Retained
from balanced_source.connectors.kafka import KafkaPartitionSplit
from balanced_source.coordinator import (
    Checkpoint,
    CoordinatorState,
    HostPhase,
    HostRole,
    HostState,
    SplitAssignmentTracker,
    loads,
    state_codec,
)
from balanced_source.coordinator.state import Revocation
from balanced_source.documents import (
    assignment,
    environment,
    increments,
    journal,
    pipeline,
    report,
    stream_offset,
)
from balanced_source.documents.alignment import GroupWatermark
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.environment import DriverEnvironment
from balanced_source.documents.journal import (
    FetchLimits,
    JournalPoint,
    JournalRecord,
    Pause,
    RecordKey,
)
from balanced_source.documents.pipeline import (
    AvailableNow,
    EventTimeAlignment,
    Pipeline,
    ProcessingTime,
    Sink,
)
from balanced_source.documents.stream_offset import StreamOffset, TermEnd
from support.golden_files import FOLDER, golden, write_once
from support.golden_reports import ANSWERS, CALLS, EVENT, LAGS, REPORT, T
from support.world import UID, kafka_source

__all__ = ["CHECKPOINT", "FOLDER", "FORMATS", "FULL", "SOURCE", "golden"]
ASSIGNMENT = Assignment(
    lineage=1,
    epoch=6,
    parallelism=2,
    incarnations={"0": 1, "1": 2},
    owners={T[0]: 0, T[1]: 1, T[2]: 0},
    starts={T[2]: 9},
    since={T[2]: 6},
    attributes={T[0]: {"stop": 100}},
    retained=frozenset({T[4]}),
    no_more_splits=frozenset({1}),
    events=(EVENT,),
    events_seen={"0": 0, "1": 3},
    settings={"kafka": {"clusters": {}}},
    alignment=GroupWatermark(watermark=1700000000000, heartbeat=1700000001.5),
)
OFFSET = StreamOffset(
    epoch=5,
    parallelism=2,
    readers=(1,),
    owners={T[1]: 1, T[3]: 1},
    positions={T[1]: 42, T[3]: 5},
    starts={T[3]: 0},
    retained={T[4]: 7},
    attributes={T[1]: {"stop": 100}},
    max_records_per_reader=1000,
    source="shop/orders",
    terms={T[1]: 12},
    term_ends={T[1]: (TermEnd(9, 30), TermEnd(11, 38))},
    closings=1,
    journal=JournalPoint(
        journal="a5f3",
        number=7,
        limits=FetchLimits(max_records=1000, max_bytes=65536, max_millis=10000, wait_millis=500),
        targets={T[1]: 90},
        finished=frozenset({T[3]}),
    ),
)
RECORD = JournalRecord(
    key=RecordKey("a5f3", 7, 1),
    starts={T[1]: 42, T[3]: 5},
    ends={T[1]: 90},
    finished=frozenset({T[3]}),
    has_more=True,
    records=48,
)


PIPELINE = Pipeline(
    checkpoint_location="s3a://bucket/checkpoint",
    sink=Sink(
        format="delta",
        options={"path": "s3a://bucket/orders"},
        secrets=("sink", "later"),
        partition_by=("day", "topic"),
    ),
    trigger=ProcessingTime("500ms"),
    transform="shop.orders:enrich",
    options={"includeHeaders": "true"},
    columns=("key", "value", "headers"),
    max_records_per_reader=100000,
    executor_patience="2m",
    accept_checkpoint_of="shop/orders-old",
    alignment=EventTimeAlignment(max_drift="5m", idle_timeout="30s", group="g"),
)
ENVIRONMENT = DriverEnvironment(
    name="orders",
    namespace="shop",
    uid=UID,
    secrets_dir="/etc/balanced-source/secrets",
    pipeline=PIPELINE,
    conf_secrets=("storage", "lake"),
)


def _split(partition: int, offset: int, stop: int | None = None) -> KafkaPartitionSplit:
    return KafkaPartitionSplit(
        cluster="c", topic="t", partition=partition, offset=offset, stopping_offset=stop
    )


STATE = CoordinatorState(
    has_history=True,
    lineage=1,
    epoch=6,
    parallelism=2,
    hosts={
        "0": HostState(
            incarnation=1, phase=HostPhase.ACTIVE, addressed_epoch=2, events_seen=1, known_from=2
        ),
        "1": HostState(
            incarnation=2,
            phase=HostPhase.RECOVERING,
            report=replace(REPORT, alignment=None, problems=()),
            events_seen=3,
            known_from=2,
        ),
    },
    owners={T[0]: 0, T[1]: 1, T[2]: 0},
    splits={T[0]: _split(0, 50, 100), T[1]: _split(1, 42, 100), T[2]: _split(2, 9)},
    tracker=SplitAssignmentTracker(by_checkpoint={6: {T[2]: 0}}),
    revoking={T[5]: Revocation(host="0", epoch=6, split=_split(5, 3))},
    retained=frozenset({T[4]}),
    reclaimed=frozenset({T[2]}),
    no_more_splits=frozenset({1}),
    outbox=(EVENT,),
    events_sent=3,
    loads=loads.from_json([[["c", "t"], [[0, 2]], [24, -8]]]),
    rebalance_nonce=4,
    settings="00ff",
)
ENUMERATOR = DiscoveryState(
    unassigned={T[5]: _split(5, 3)},
    finished=frozenset({T[0]}),
    retained={T[4]: Retained(split=_split(4, 7), until=1700003600.0)},
    preferred={T[5]: 1},
    discovered=frozenset({"c"}),
    rebalance_due=True,
    assigner=AssignerIdentity(name="LoadAware", parameters={"tolerance": 0.5}),
)
CHECKPOINT = Checkpoint(coordinator=STATE, enumerator=ENUMERATOR)
CHANGING_HOSTS = replace(
    CHECKPOINT,
    coordinator=replace(
        STATE,
        hosts={
            **STATE.hosts,
            "2": HostState(role=HostRole.JOINING),
            "3": HostState(role=HostRole.LEAVING),
        },
    ),
)
"""A source that a host joins and another one leaves."""
SOURCE = kafka_source("c")


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A kind of document, with an example in its present version."""

    version: int
    example: Any
    encode: Callable[[Any], str]
    decode: Callable[[str], Any]


BASE = increments.Base.read(golden("assignment-base", 1), source=UID)
"""What the increment builds upon; written once."""
NEXT = replace(
    BASE.assignment,
    epoch=7,
    owners={**BASE.assignment.owners, T[5]: 0},
    starts={T[5]: 9},
    since={T[5]: 7},
    attributes={T[1]: {"stop": 100}},
    retained=frozenset({T[4]}),
)


def _increment_text(assigned: Assignment) -> str:
    return increments.encode(assigned, source=UID, base=BASE)[0]


def _offset_text(offset: StreamOffset) -> str:
    return json.dumps(stream_offset.to_json(offset), sort_keys=True, separators=(",", ":"))


FORMATS = {
    "assignment": Format(
        version=assignment.KIND.version,
        example=replace(ASSIGNMENT, look_ahead=2, calls=CALLS, idle_hosts=frozenset({"1"})),
        encode=lambda value: assignment.encode(value, source=UID),
        decode=assignment.decode,
    ),
    "assignment-increment": Format(
        version=increments.KIND.version,
        example=NEXT,
        encode=_increment_text,
        decode=lambda text: increments.apply(text, BASE),
    ),
    "report": Format(
        version=report.KIND.version,
        example=replace(REPORT, requests={0: 2, 2: 1}, answers=ANSWERS),
        encode=lambda value: report.encode(value, source=UID),
        decode=report.decode,
    ),
    "stream-offset": Format(
        version=stream_offset.VERSION,
        example=OFFSET,
        encode=_offset_text,
        decode=lambda text: stream_offset.from_json(json.loads(text)),
    ),
    "journal-record": Format(
        version=journal.KIND.version,
        example=RECORD,
        encode=lambda value: journal.encode(value, source=value.key.journal),
        decode=lambda text: journal.decode(text, source=RECORD.key.journal, key=RECORD.key),
    ),
    "pipeline": Format(
        version=pipeline.VERSION,
        example=replace(PIPELINE, connector="numbers"),
        encode=pipeline.encode,
        decode=pipeline.decode,
    ),
    "driver-environment": Format(
        version=environment.VERSION,
        example=replace(ENVIRONMENT, host="2"),
        encode=lambda value: json.dumps(environment.to_variables(value), sort_keys=True),
        decode=lambda text: environment.from_variables(json.loads(text)),
    ),
    "enumerator-state": Format(
        version=state_codec.KIND.version,
        example=CHANGING_HOSTS,
        encode=lambda value: state_codec.encode(value, SOURCE, uid=UID),
        decode=lambda text: state_codec.decode(text, SOURCE),
    ),
}


def _full_state() -> Checkpoint[Any, Any]:
    """A state whose splits know their topic's id and stop, with other numbers than a new one."""
    hosts = {
        "0": STATE.hosts["0"],
        "1": replace(
            STATE.hosts["1"],
            addressed_epoch=4,
            report=replace(REPORT, lineage=7, alignment=None, problems=()),
        ),
    }
    splits = {
        s: replace(split, topic_id="id-t", stopping_offset=100) for s, split in STATE.splits.items()
    }
    revoked = replace(_split(5, 3, 100), topic_id="id-t")
    state = replace(
        STATE,
        lineage=7,
        hosts=hosts,
        splits=splits,
        revoking={T[5]: Revocation(host="0", epoch=6, split=revoked)},
    )
    retained = {
        T[4]: Retained(split=replace(_split(4, 7, 100), topic_id="id-t"), until=1700003600.0)
    }
    policy = PerScopeAssigner(HashAssigner()).identity
    enumerator = replace(ENUMERATOR, unassigned={T[5]: revoked}, retained=retained, assigner=policy)
    return Checkpoint(coordinator=state, enumerator=enumerator)


def _with_roles(full: Checkpoint[Any, Any]) -> Checkpoint[Any, Any]:
    hosts = {**full.coordinator.hosts, "2": HostState(role=HostRole.JOINING)}
    return replace(full, coordinator=replace(full.coordinator, hosts=hosts))


FULL_STATE = _full_state()
FULL = {
    "assignment": replace(
        ASSIGNMENT, lineage=7, look_ahead=3, calls=CALLS[1:], idle_hosts=frozenset({"0", "1"})
    ),
    "assignment-increment": replace(
        NEXT,
        lineage=7,
        no_more_splits=frozenset({1}),
        events=(EVENT,),
        events_seen={"0": 2},
        alignment=GroupWatermark(watermark=1700000000000, heartbeat=1700000001.5),
    ),
    "report": replace(REPORT, lineage=7, requests={1: 1}, answers=ANSWERS[1:]),
    "journal-record": JournalRecord(key=RECORD.key),
    "stream-offset": replace(OFFSET, closings=2),
    "pipeline": Pipeline(
        checkpoint_location="/checkpoint",
        sink=Sink(format="memory"),
        trigger=AvailableNow(),
        connector="numbers",
    ),
    "driver-environment": DriverEnvironment(name="orders", namespace="shop", uid=UID, host="1"),
    "enumerator-state": _with_roles(_full_state()),
}
"""Further examples, for the fields that have their defaults in the first ones."""

UNDISCOVERED = {
    "assignment": replace(
        ASSIGNMENT,
        undiscovered=frozenset({"west"}),
        look_ahead=2,
        calls=CALLS[:1],
        idle_hosts=frozenset({"1"}),
    ),
    "assignment-increment": replace(NEXT, undiscovered=frozenset({"east", "west"})),
}
"""Examples with a field that was added later, which readers of the same version ignore if they do
not know it."""

PULLED = {"assignment-increment": replace(NEXT, look_ahead=3)}
"""Examples of a source whose readers ask for splits."""

CALLED = {"assignment-increment": replace(NEXT, calls=CALLS)}
"""Examples of a source whose driver lists the splits."""

IDLE = {"assignment-increment": replace(NEXT, idle_hosts=frozenset({"1"}))}
"""Examples of a source that a host joins or leaves."""

LEASED = {
    "assignment": replace(ASSIGNMENT, idle_hosts=frozenset({"1"}), report_within=60.0),
    "assignment-increment": replace(NEXT, report_within=60.0),
}
"""Examples of a source that gives up lost hosts."""

ENDING = {
    "assignment": replace(ASSIGNMENT, idle_hosts=frozenset({"1"}), has_ending_splits=False),
    "assignment-increment": replace(NEXT, has_ending_splits=True),
}
"""Examples of an operator that says whether splits of the source end."""

CONNECTOR = {
    "driver-environment": replace(
        ENVIRONMENT, host="2", pipeline=replace(PIPELINE, connector="numbers")
    )
}
"""Examples of a source of another connector."""

_OPTIONED = replace(
    PIPELINE,
    connector="files",
    options={**PIPELINE.options, "fileFormat": "json", "schema": "id BIGINT"},
)
RETAINING = {"driver-environment": replace(ENVIRONMENT, host="2", retained_batches=500)}
"""Examples of a driver whose Spark retains more micro-batches than by default."""

MEASURED = {"driver-environment": replace(ENVIRONMENT, host="2", metrics_port=8090)}
"""Examples of a driver that serves metrics."""

DOCUMENTED = {
    "driver-environment": replace(
        ENVIRONMENT, host="2", documentation_url="https://docs.test/balanced-source"
    )
}
"""Examples of a driver whose messages link to a copy of the documentation."""

_SPARING = replace(PIPELINE, connector="numbers", warm_spares=2)
SPARING = {
    "pipeline": _SPARING,
    "driver-environment": replace(ENVIRONMENT, host="2", pipeline=_SPARING),
}
"""Examples of a driver that keeps spare executors; older drivers ignore that."""

OPTIONED = {
    "pipeline": _OPTIONED,
    "driver-environment": replace(ENVIRONMENT, host="2", pipeline=_OPTIONED),
}
"""Examples of a source whose connector gives the driver options."""

_ENUMERATOR = replace(
    ENUMERATOR, discovered=frozenset({"c", "gone"}), removed={"gone": 1700003600.0}
)
REMOVED = {"enumerator-state": replace(CHANGING_HOSTS, enumerator=_ENUMERATOR)}
"""Examples of a source that a cluster was taken out of, which may return."""

BEHIND = {"journal-record": replace(RECORD, behind={T[1]: 1500})}
"""Examples of a source that says how far it is behind in time."""

assert OFFSET.journal is not None
HELD = {"stream-offset": replace(OFFSET, journal=replace(OFFSET.journal, held=frozenset({T[1]})))}
"""Examples of a source of which a split is not read, because it was deleted or created again."""

_PAUSE = Pause(beyond=MIN_WATERMARK, splits=frozenset({T[1]}))
PAUSED = {
    "journal-record": replace(RECORD, times={T[1]: 1700000000123, T[3]: -1}),
    "stream-offset": replace(OFFSET, journal=replace(OFFSET.journal, pause=_PAUSE)),
}
"""Examples of a source whose splits are aligned by the times that its readers tell."""

ZONED = replace(FULL["report"], zone="eu-1a")
"""A report of a driver that knows its zone: operators of all versions read it."""


FOLLOWING = replace(
    FULL["report"], former=replace(REPORT, incarnation=1, problems=(), alignment=None)
)
"""A report of a driver that has lost its Spark checkpoint and repeats its predecessor's: operators
of all versions read it."""


_KNOWN = FULL["enumerator-state"]
_HOSTS = {
    name: host
    if host.report is None
    else replace(host, report=replace(host.report, hosts=("1", "2")))
    for name, host in _KNOWN.coordinator.hosts.items()
}
HOSTS = {
    "report": replace(FULL["report"], hosts=("1", "2")),
    "stream-offset": replace(OFFSET, hosts=("1", "2")),
    "enumerator-state": replace(_KNOWN, coordinator=replace(_KNOWN.coordinator, hosts=_HOSTS)),
}
"""Examples of a host that knows of other hosts; software of all versions reads them."""

QUIET = {
    "journal-record": replace(RECORD, read_up_to={T[1]: 1700000000000}),
    "stream-offset": replace(
        OFFSET, journal=replace(OFFSET.journal, read_up_to={T[1]: 1700000000000})
    ),
}
"""Examples of a source with a split that had nothing more at a known time."""

SKIPPING = {"journal-record": replace(RECORD, gaps={T[1]: 2})}
"""An example of a reader that has skipped what had expired."""

FURTHER = {
    "-full": FULL,
    "-undiscovered": UNDISCOVERED,
    "-removed": REMOVED,
    "-behind": BEHIND,
    "-held": HELD,
    "-paused": PAUSED,
    "-quiet": QUIET,
    "-skipping": SKIPPING,
    "-pulled": PULLED,
    "-called": CALLED,
    "-idle": IDLE,
    "-leased": LEASED,
    "-ending": ENDING,
    "-connector": CONNECTOR,
    "-documentation": DOCUMENTED,
    "-metrics": MEASURED,
    "-retained": RETAINING,
    "-options": OPTIONED,
    "-hosts": HOSTS,
    "-spares": SPARING,
}
"""End of a file's name → kind → example in its present version."""


if __name__ == "__main__":
    write_once("report-v2-lags.json", report.encode(LAGS, source=UID))
    write_once("report-v6-zone.json", report.encode(ZONED, source=UID))
    write_once("report-v6-former.json", report.encode(FOLLOWING, source=UID))
    for kind, made in FORMATS.items():
        write_once(f"{kind}-v{made.version}.json", made.encode(made.example))
        for end, examples in FURTHER.items():
            if kind in examples:
                write_once(f"{kind}-v{made.version}{end}.json", made.encode(examples[kind]))
