"""Group B: state and its versions.

Every version's bytes are kept as golden files and stay readable.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.assigners import (
    HashAssigner,
    LoadAwareAssigner,
    PerScopeAssigner,
    RoundRobinAssigner,
)
from balanced_source.connectors.discovery import DiscoveryState, Retained
from balanced_source.coordinator import (
    Checkpoint,
    CoordinatorState,
    HostPhase,
    HostState,
    state_codec,
)
from balanced_source.coordinator.view import assignment_of
from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import envelope, storage
from balanced_source.errors import CorruptDocumentError, IncompatibleVersionError
from support.golden import CHECKPOINT, FOLDER, FORMATS, SOURCE, golden
from support.golden_reports import T
from support.stage import Stage, bounded_source, splits
from support.world import UID, kafka_source

STARTING = ("pipeline", "driver-environment")
"""Documents that a driver is started with: no envelope, and no splits."""

WHOLE = (*STARTING, "journal-record")
"""Documents that no version has changed, except for what a later one adds."""

EVERY = [
    (kind, version) for kind, made in FORMATS.items() for version in range(1, made.version + 1)
]


ALL_BUSY = {"idle_hosts": frozenset[str]()}


def resealed(text: str, **changes: Any) -> str:
    """A document with other content and a digest that fits."""
    content = {**json.loads(text), **changes}
    content.pop("digest", None)
    return envelope.canonical({**content, "digest": envelope.digest(content)})


@pytest.mark.scenario("B1")
def test_b1_the_present_version_makes_a_round_trip() -> None:
    """10 topics of 10 owned and 10 unassigned splits each, with the flag: equal afterwards."""
    made = {t: _of_topic(t) for t in (f"t{number}" for number in range(10))}
    owned = {s.split_id: s for topic in made.values() for s in topic[:10]}
    waiting = {s.split_id: s for topic in made.values() for s in topic[10:]}
    state = CoordinatorState(
        parallelism=4,
        hosts={"0": HostState()},
        owners={s: s[2] % 4 for s in owned},
        splits=owned,
        epoch=9,
    )
    before = Checkpoint(
        coordinator=state, enumerator=DiscoveryState(unassigned=waiting, rebalance_due=True)
    )

    assert state_codec.decode(state_codec.encode(before, SOURCE, uid=UID), SOURCE) == before


def _of_topic(topic: str) -> list[Any]:
    return [SOURCE.create_split(split_id, split_id[2] * 7, {}) for split_id in splits(topic, 20)]


def _as_said_by(kind: str, version: int) -> Any:
    """Return the example as a version can say it.

    Version 1 means Kafka, and a driver of the first host.
    """
    example = FORMATS[kind].example
    unsaid = {("pipeline", 1): {"connector": "kafka"}, ("driver-environment", 1): {"host": "0"}}
    return replace(example, **unsaid.get((kind, version), {}))


@pytest.mark.parametrize(("kind", "version"), EVERY)
@pytest.mark.scenario("B2", "B3", "J9")
def test_b2_every_version_is_read(kind: str, version: int) -> None:
    """The bytes of each version that was ever written decode, and what they said is still said."""
    value = FORMATS[kind].decode(golden(kind, version))

    if kind == "enumerator-state":
        assert value.coordinator.owners == CHECKPOINT.coordinator.owners
        assert value.coordinator.splits[T[0]].stopping_position == 100
        assert value.coordinator.hosts["1"].phase is HostPhase.RECOVERING
        assert value.enumerator.retained == CHECKPOINT.enumerator.retained
    elif kind in WHOLE:
        assert value == _as_said_by(kind, version)
    else:
        assert value.owners == FORMATS[kind].example.owners
        assert value.retained == FORMATS[kind].example.retained


def test_every_version_of_the_enumerators_own_state_is_kept() -> None:
    """It has a version of its own inside the document.

    A golden file without it would read nothing old.
    """
    kept = [
        json.loads(golden(kind, version)) for kind, version in EVERY if kind == "enumerator-state"
    ]

    assert {d["body"]["enumerator"]["version"] for d in kept} == set(
        range(1, SOURCE.state_version + 1)
    )


@pytest.mark.parametrize("name", ["gzip", "bzip2"])
def test_every_compression_that_was_ever_stored_is_read(name: str) -> None:
    """A ConfigMap's content as each version packed it."""
    blob = storage.Blob(
        binary=json.loads((FOLDER / f"packed-{name}.json").read_text(encoding="utf-8"))
    )

    assert storage.unpack(blob) == golden("assignment", 1)


@pytest.mark.parametrize("kind", FORMATS)
def test_the_present_version_writes_its_golden_bytes(kind: str) -> None:
    """A changed format gets a new version, or a new golden file if it is unreleased."""
    made = FORMATS[kind]

    assert made.encode(made.example) == golden(kind, made.version)
    assert made.decode(golden(kind, made.version)) == made.example


@pytest.mark.parametrize(
    ("kind", "version", "absent"),
    [
        pytest.param("assignment", 5, ALL_BUSY, id="assignment without idle hosts"),
        pytest.param("assignment", 4, {**ALL_BUSY, "calls": ()}, id="assignment without calls"),
        pytest.param(
            "assignment",
            3,
            {**ALL_BUSY, "calls": (), "look_ahead": 0},
            id="assignment whose readers do not ask",
        ),
        pytest.param(
            "assignment",
            2,
            {**ALL_BUSY, "calls": (), "look_ahead": 0, "alignment": None},
            id="assignment without a group",
        ),
        pytest.param("driver-environment", 1, {"host": "0"}, id="environment of the first host"),
        pytest.param("report", 5, {"answers": ()}, id="report without answers"),
        pytest.param("report", 4, {"answers": (), "requests": {}}, id="report without requests"),
        pytest.param(
            "report",
            3,
            {"answers": (), "requests": {}, "problems": ()},
            id="report without problems",
        ),
        pytest.param(
            "stream-offset",
            6,
            {"term_ends": {}},
            id="stream offset without ends of former leaderships",
        ),
        pytest.param(
            "stream-offset",
            5,
            {"journal": None, "term_ends": {}},
            id="stream offset without a journal",
        ),
        pytest.param(
            "stream-offset",
            4,
            {"journal": None, "terms": {}, "term_ends": {}, "closings": 0},
            id="stream offset without terms",
        ),
        pytest.param(
            "stream-offset",
            3,
            {"journal": None, "terms": {}, "term_ends": {}, "closings": 0, "source": ""},
            id="stream offset without terms and source",
        ),
        pytest.param(
            "report",
            2,
            {"answers": (), "requests": {}, "problems": (), "alignment": None},
            id="report without problems and group",
        ),
    ],
)
def test_documents_are_written_in_the_oldest_sufficient_version(
    kind: str, version: int, absent: dict[str, Any]
) -> None:
    """Operators and drivers of older images keep reading documents that use no newer feature."""
    made = FORMATS[kind]

    assert made.encode(replace(made.example, **absent)) == golden(kind, version)


@pytest.mark.scenario("B4")
def test_b4_the_state_of_splits_survives_an_upgrade() -> None:
    """Owned, unassigned, finished, retained, revoked: each is what it was, and so is the flag."""
    old = FORMATS["enumerator-state"].decode(golden("enumerator-state", 1))

    enumerator, coordinator = old.enumerator, old.coordinator
    assert (set(enumerator.unassigned), enumerator.finished) == ({T[5]}, {T[0]})
    assert (enumerator.rebalance_due, enumerator.preferred) == (True, {T[5]: 1})
    assert (set(coordinator.revoking), coordinator.retained) == ({T[5]}, {T[4]})
    assert coordinator.tracker == CHECKPOINT.coordinator.tracker


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.scenario("B5")
def test_b5_trailing_bytes_are_corruption(kind: str) -> None:
    """One byte more than was written is refused."""
    with pytest.raises((CorruptDocumentError, json.JSONDecodeError)):
        FORMATS[kind].decode(golden(kind, FORMATS[kind].version) + "x")


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.scenario("B6")
def test_b6_a_newer_version_is_refused(kind: str) -> None:
    """The error names the version that was found and the newest that is understood."""
    newest = FORMATS[kind].version
    text = golden(kind, newest)
    newer = _newer(kind, text, newest + 7)

    with pytest.raises(IncompatibleVersionError, match=rf"version {newest + 7}.*up to {newest}"):
        FORMATS[kind].decode(newer)


def _newer(kind: str, text: str, version: int) -> str:
    if kind == "driver-environment":
        return json.dumps({**json.loads(text), "BALANCED_SOURCE_ENVIRONMENT_VERSION": str(version)})
    if kind in ("stream-offset", "pipeline"):
        return json.dumps({**json.loads(text), "version": version})
    return resealed(text, version=version)


@pytest.mark.scenario("B6")
def test_b6_a_newer_enumerator_inside_a_known_document_is_refused() -> None:
    """The connector's part has a version of its own."""
    text = golden("enumerator-state", FORMATS["enumerator-state"].version)
    body = json.loads(text)["body"]
    newer = resealed(text, body={**body, "enumerator": {**body["enumerator"], "version": 99}})

    with pytest.raises(
        IncompatibleVersionError, match=rf"version 99.*up to {SOURCE.state_version}"
    ):
        FORMATS["enumerator-state"].decode(newer)


@pytest.mark.scenario("B7", "K10")
def test_b7_clusters_and_retained_splits_make_a_round_trip() -> None:
    """Two clusters, one of them retained until a deadline.

    The restarted operator knows the same.
    """
    stage = (
        Stage(readers=2, source=kafka_source("c", "d", retention=123.0))
        .topic("t", 3)
        .topic("t", 3, cluster="d")
    )
    stage.running().source_changes(kafka_source("c", retention=123.0)).adopts()
    before = stage.operator.coordinator.checkpoint()

    after = stage.operator_starts().operator.coordinator.checkpoint()

    assert after.enumerator == before.enumerator
    assert after.coordinator.owners == before.coordinator.owners
    assert {entry.until for entry in after.enumerator.retained.values()} == {123.0}


@pytest.mark.scenario("B8")
@pytest.mark.parametrize("stop", [None, 7])
def test_b8_an_absent_stop_stays_absent(stop: int | None) -> None:
    """A split with a stop keeps it, one without has none, side by side in one document."""
    made = {s: SOURCE.create_split(s, 1, {"stop": 7} if s[2] else {}) for s in splits("t", 2)}
    state = Checkpoint(coordinator=CoordinatorState(), enumerator=DiscoveryState(unassigned=made))

    after = state_codec.decode(state_codec.encode(state, SOURCE, uid=UID), SOURCE)

    split = after.enumerator.unassigned["c", "t", 0 if stop is None else 1]
    assert split.stopping_position == stop


@pytest.mark.scenario("B9")
def test_b9_an_operator_continues_from_the_oldest_state() -> None:
    """It restores the oldest golden bytes, moves nothing owned, and stores it in version 3."""
    stage = Stage(readers=2).topic("t", 6)
    stage.store.state = golden("enumerator-state", 1)
    before = FORMATS["enumerator-state"].decode(stage.store.state).coordinator
    implied = assignment_of(before, stage.operator.source.reader_settings())
    stage.store.assignment = assignment_document.encode(implied, source=UID)

    stage.operator_starts()

    assert stage.owners == before.owners
    assert stage.state.hosts["1"].report is not None
    assert json.loads(stage.store.state)["version"] == 3, "hosts of this state do not change"


FORMER = {
    "RoundRobinAssigner()": RoundRobinAssigner(),
    "HashAssigner()": HashAssigner(),
    "LoadAwareAssigner(tolerance=0.01, aversion=0.02)": LoadAwareAssigner(),
    "PerClusterAssigner(inner=RoundRobinAssigner())": PerScopeAssigner(RoundRobinAssigner()),
    "PerClusterAssigner(inner=HashAssigner())": PerScopeAssigner(HashAssigner()),
    "PerClusterAssigner(inner=LoadAwareAssigner(tolerance=0.01, aversion=0.02))": PerScopeAssigner(
        LoadAwareAssigner()
    ),
}
"""What release 0.1.0 stored of each policy that a user could choose."""


def _as_0_1_0_wrote_it(text: str, assigner: str) -> str:
    body = json.loads(text)["body"]
    state = {**body["enumerator"]["state"], "assigner": assigner}
    return resealed(text, version=2, body={**body, "enumerator": {"version": 2, "state": state}})


@pytest.mark.parametrize("text", FORMER)
def test_an_upgrade_from_0_1_0_moves_no_split(text: str) -> None:
    """The policy was stored by its class; it is recognised as the one that the source still has."""
    # Owners that no policy would choose: any rebalance would show.
    stage = (
        Stage(readers=3, source=kafka_source("c", assigner=FORMER[text]))
        .topic("t", 6)
        .topic("u", 6)
        .running()
    )
    stage.moves(("c", "t", 0), (stage.owners["c", "t", 0] + 1) % 3).adopts()
    before = stage.owners
    assert stage.store.state is not None
    stage.store.state = _as_0_1_0_wrote_it(stage.store.state, text)

    stage.operator_starts(kafka_source("c", assigner=FORMER[text])).discovers().adopts().adopts()

    assert stage.owners == before


def test_another_policy_chosen_during_the_upgrade_takes_effect() -> None:
    stage = Stage(readers=3, source=kafka_source("c", assigner=HashAssigner()))
    for topic in "adgj":
        stage.topic(topic, 1)
    stage.running()
    assert stage.spread == 4, "all of these hash to one reader"
    assert stage.store.state is not None
    stage.store.state = _as_0_1_0_wrote_it(stage.store.state, "HashAssigner()")

    stage.operator_starts(
        kafka_source("c", assigner=RoundRobinAssigner())
    ).discovers().adopts().adopts()

    assert stage.spread <= 1


@pytest.mark.scenario("B10")
def test_b10_retained_splits_have_their_deadline() -> None:
    """In the oldest version as in the present one."""
    for version in range(1, FORMATS["enumerator-state"].version + 1):
        entry = (
            FORMATS["enumerator-state"]
            .decode(golden("enumerator-state", version))
            .enumerator.retained[T[4]]
        )
        assert entry == Retained(split=SOURCE.create_split(T[4], 7, {}), until=1700003600.0)


@pytest.mark.scenario("B11")
def test_b11_reports_that_wait_are_part_of_the_state() -> None:
    """What is restored equals what the reader reported, with the ends of its splits."""
    stage = Stage(readers=2, source=bounded_source("c")).topic("t", 4).running()
    stage.fails(0).fails(1).registers(0)
    reported = stage.state.hosts["0"].report

    stage.operator_starts()

    assert reported is not None
    assert stage.state.hosts["0"].report == reported
    assert all("stop" in reported.attributes[split] for split in reported.positions)
