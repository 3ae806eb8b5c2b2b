"""Golden files are write-once, and each of their fields is asserted."""

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from balanced_source.assigners import AssignerIdentity
from balanced_source.coordinator import Checkpoint, loads
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.pipeline import DEFAULT_CONNECTOR
from support.golden import (
    ASSIGNMENT,
    BASE,
    BEHIND,
    CALLED,
    CHANGING_HOSTS,
    CHECKPOINT,
    CONNECTOR,
    DOCUMENTED,
    ENDING,
    ENVIRONMENT,
    FOLLOWING,
    FORMATS,
    FULL,
    FULL_STATE,
    HELD,
    HOSTS,
    IDLE,
    LEASED,
    MEASURED,
    NEXT,
    OFFSET,
    OPTIONED,
    PAUSED,
    PIPELINE,
    PULLED,
    QUIET,
    RECORD,
    REMOVED,
    RETAINING,
    SKIPPING,
    SPARING,
    STATE,
    UNDISCOVERED,
    ZONED,
    _split,
)
from support.golden_files import (
    DIGESTS,
    FOLDER,
    GoldenChangedError,
    digest,
    digests,
    golden,
    write_once,
)
from support.golden_reports import ANSWERS, CALLS, LAGS, REPORT, T

RELEASED = {"0.1.0": (15, "97120303674371dc85f13249a9413eb71115c4002e9630c87c53a6b8f17e0696")}
"""Release → number of lines of the list at that time, and their SHA-256: listed files stay listed.
"""

NOTHING_SEEN = loads.from_json([])


def first_state() -> Any:
    """What version 1 knew: no attributes in reports, no loads, and less about the past."""
    hosts = {
        "0": replace(STATE.hosts["0"], known_from=1),
        "1": replace(
            STATE.hosts["1"],
            known_from=1,
            report=replace(REPORT, attributes={}, alignment=None, problems=()),
        ),
    }
    state = replace(
        STATE,
        hosts=hosts,
        splits={T[0]: _split(0, 50, 100), T[1]: _split(1, 42), T[2]: _split(2, 9)},
        reclaimed=frozenset(),
        loads=NOTHING_SEEN,
        rebalance_nonce=0,
        settings="",
    )
    return replace(
        CHECKPOINT, coordinator=state, enumerator=replace(CHECKPOINT.enumerator, assigner=None)
    )


def second_state(state: Checkpoint[Any, Any], **changes: Any) -> Checkpoint[Any, Any]:
    """What version 2 said: the policy by its class, which is known by its name now."""
    policy = AssignerIdentity(name="RoundRobin")
    return replace(
        state,
        coordinator=replace(state.coordinator, **changes),
        enumerator=replace(state.enumerator, assigner=policy),
    )


BASE_ASSIGNMENT = Assignment(
    lineage=1,
    epoch=6,
    parallelism=2,
    incarnations={"0": 1, "1": 2},
    owners={split: number % 2 for number, split in enumerate(T)},
    starts={T[2]: 9},
    since={T[2]: 6},
    attributes={T[0]: {"stop": 100}, T[1]: {"stop": 100}},
    retained=frozenset({T[3]}),
    settings={"kafka": {"clusters": {}}},
)

FIRST_OFFSET = replace(OFFSET, source="", terms={}, term_ends={}, closings=0, journal=None)
"""What version 3 knew."""

EXPECTED: dict[tuple[str, int, str], Any] = {
    ("assignment", 1, ""): replace(ASSIGNMENT, alignment=None),
    ("assignment", 2, ""): replace(ASSIGNMENT, alignment=None),
    ("assignment", 3, ""): ASSIGNMENT,
    ("assignment", 3, "-full"): replace(
        FULL["assignment"], look_ahead=0, calls=(), idle_hosts=frozenset()
    ),
    ("assignment", 3, "-undiscovered"): replace(
        UNDISCOVERED["assignment"], look_ahead=0, calls=(), idle_hosts=frozenset()
    ),
    ("assignment", 4, ""): replace(ASSIGNMENT, look_ahead=2),
    ("assignment", 4, "-full"): replace(FULL["assignment"], calls=(), idle_hosts=frozenset()),
    ("assignment", 4, "-undiscovered"): replace(
        UNDISCOVERED["assignment"], calls=(), idle_hosts=frozenset()
    ),
    ("assignment", 5, ""): replace(ASSIGNMENT, look_ahead=2, calls=CALLS),
    ("assignment", 5, "-full"): replace(FULL["assignment"], idle_hosts=frozenset()),
    ("assignment", 5, "-undiscovered"): replace(UNDISCOVERED["assignment"], idle_hosts=frozenset()),
    ("assignment", 6, ""): replace(
        ASSIGNMENT, look_ahead=2, calls=CALLS, idle_hosts=frozenset({"1"})
    ),
    ("assignment", 6, "-full"): FULL["assignment"],
    ("assignment", 6, "-undiscovered"): UNDISCOVERED["assignment"],
    ("assignment", 6, "-leased"): LEASED["assignment"],
    ("assignment", 6, "-ending"): ENDING["assignment"],
    ("assignment-base", 1, ""): BASE_ASSIGNMENT,
    ("assignment-increment", 1, ""): NEXT,
    ("assignment-increment", 1, "-full"): FULL["assignment-increment"],
    ("assignment-increment", 1, "-undiscovered"): UNDISCOVERED["assignment-increment"],
    ("assignment-increment", 1, "-pulled"): PULLED["assignment-increment"],
    ("assignment-increment", 1, "-called"): CALLED["assignment-increment"],
    ("assignment-increment", 1, "-idle"): IDLE["assignment-increment"],
    ("assignment-increment", 1, "-leased"): LEASED["assignment-increment"],
    ("assignment-increment", 1, "-ending"): ENDING["assignment-increment"],
    ("report", 1, ""): replace(REPORT, attributes={}, alignment=None, problems=()),
    ("report", 2, ""): replace(REPORT, alignment=None, problems=()),
    ("report", 2, "-lags"): LAGS,
    ("report", 3, ""): replace(REPORT, problems=()),
    ("report", 4, ""): REPORT,
    ("report", 4, "-full"): replace(FULL["report"], requests={}, answers=()),
    ("report", 5, ""): replace(REPORT, requests={0: 2, 2: 1}),
    ("report", 5, "-full"): replace(FULL["report"], answers=()),
    ("report", 6, ""): replace(REPORT, requests={0: 2, 2: 1}, answers=ANSWERS),
    ("report", 6, "-full"): FULL["report"],
    ("report", 6, "-zone"): ZONED,
    ("report", 6, "-former"): FOLLOWING,
    ("report", 6, "-hosts"): HOSTS["report"],
    ("stream-offset", 7, "-hosts"): HOSTS["stream-offset"],
    ("enumerator-state", 4, "-hosts"): HOSTS["enumerator-state"],
    ("stream-offset", 1, ""): replace(FIRST_OFFSET, attributes={}, max_records_per_reader=None),
    ("stream-offset", 2, ""): replace(FIRST_OFFSET, max_records_per_reader=None),
    ("stream-offset", 3, ""): FIRST_OFFSET,
    ("stream-offset", 3, "-full"): replace(FIRST_OFFSET, closings=2),
    ("stream-offset", 4, ""): replace(FIRST_OFFSET, source=OFFSET.source),
    ("stream-offset", 4, "-full"): replace(FIRST_OFFSET, source=OFFSET.source, closings=2),
    ("stream-offset", 5, ""): replace(OFFSET, journal=None, term_ends={}),
    ("stream-offset", 5, "-full"): replace(FULL["stream-offset"], journal=None, term_ends={}),
    ("stream-offset", 6, ""): replace(OFFSET, term_ends={}),
    ("stream-offset", 6, "-full"): replace(FULL["stream-offset"], term_ends={}),
    ("stream-offset", 7, ""): OFFSET,
    ("stream-offset", 7, "-held"): HELD["stream-offset"],
    ("stream-offset", 7, "-paused"): PAUSED["stream-offset"],
    ("stream-offset", 7, "-quiet"): QUIET["stream-offset"],
    ("stream-offset", 7, "-full"): FULL["stream-offset"],
    ("journal-record", 1, ""): RECORD,
    ("journal-record", 1, "-full"): FULL["journal-record"],
    ("pipeline", 1, ""): PIPELINE,
    ("pipeline", 1, "-full"): replace(FULL["pipeline"], connector=DEFAULT_CONNECTOR),
    ("pipeline", 2, ""): replace(PIPELINE, connector="numbers"),
    ("pipeline", 2, "-full"): FULL["pipeline"],
    ("driver-environment", 1, ""): ENVIRONMENT,
    ("driver-environment", 1, "-full"): replace(FULL["driver-environment"], host="0"),
    ("driver-environment", 1, "-connector"): replace(CONNECTOR["driver-environment"], host="0"),
    ("driver-environment", 2, "-connector"): CONNECTOR["driver-environment"],
    ("driver-environment", 2, ""): replace(ENVIRONMENT, host="2"),
    ("driver-environment", 2, "-full"): FULL["driver-environment"],
    ("driver-environment", 1, "-options"): replace(OPTIONED["driver-environment"], host="0"),
    ("driver-environment", 2, "-documentation"): DOCUMENTED["driver-environment"],
    ("driver-environment", 2, "-metrics"): MEASURED["driver-environment"],
    ("driver-environment", 2, "-retained"): RETAINING["driver-environment"],
    ("driver-environment", 2, "-options"): OPTIONED["driver-environment"],
    ("pipeline", 2, "-options"): OPTIONED["pipeline"],
    ("pipeline", 2, "-spares"): SPARING["pipeline"],
    ("driver-environment", 2, "-spares"): SPARING["driver-environment"],
    ("enumerator-state", 1, ""): first_state(),
    # Version 2 as builds before 0.1.0 wrote it: the same format, without loads.
    ("enumerator-state", 2, "-before-loads"): second_state(
        CHECKPOINT, loads=NOTHING_SEEN, rebalance_nonce=0
    ),
    ("enumerator-state", 2, ""): second_state(CHECKPOINT),
    ("enumerator-state", 2, "-full"): second_state(FULL_STATE),
    ("enumerator-state", 3, ""): CHECKPOINT,
    ("enumerator-state", 3, "-full"): FULL_STATE,
    ("enumerator-state", 4, ""): CHANGING_HOSTS,
    ("enumerator-state", 4, "-full"): FULL["enumerator-state"],
    ("enumerator-state", 4, "-removed"): REMOVED["enumerator-state"],
    ("journal-record", 1, "-behind"): BEHIND["journal-record"],
    ("journal-record", 1, "-paused"): PAUSED["journal-record"],
    ("journal-record", 1, "-quiet"): QUIET["journal-record"],
    ("journal-record", 1, "-skipping"): SKIPPING["journal-record"],
}
"""What each file says, whole: kind, version and file → value."""

NOT_STORED = {
    ("enumerator-state", "HostReport", "alignment"): "comes again with the next report",
    ("enumerator-state", "HostReport", "problems"): "come again with the next report",
    ("enumerator-state", "HostReport", "answers"): "come again with the next report",
    ("enumerator-state", "HostReport", "requests"): "come again with the next report",
    ("enumerator-state", "HostReport", "former"): "is taken in before the report is stored",
    ("enumerator-state", "HostReport", "zone"): "comes again with the next report",
    (
        "enumerator-state",
        "SplitAssignmentTracker",
        "uncheckpointed",
    ): "a state is stored after its checkpoint is made",
    ("enumerator-state", "KafkaPartitionSplit", "is_cut"): "is told once, when it is looked up",
    (
        "enumerator-state",
        "KafkaPartitionSplit",
        "void_commit",
    ): "is told once, when it is looked up",
    ("report", "Problem", "is_hopeless"): "only a query without an operator asks",
}
"""Fields that a document leaves out on purpose."""


def decoded(kind: str, version: int, which: str) -> Any:
    if kind == "assignment-base":
        return BASE.assignment
    return FORMATS[kind].decode(golden(kind, version, which))


@pytest.mark.parametrize(("kind", "version", "which"), EXPECTED)
def test_every_field_of_every_version_is_what_was_written(
    kind: str, version: int, which: str
) -> None:
    assert decoded(kind, version, which) == EXPECTED[kind, version, which]


UPGRADED = {
    ("assignment", 1): "version 2 changed the table of attributes",
    ("enumerator-state", 1): "version 2 changed the tables of splits",
    ("enumerator-state", 2): "version 3 stores the strategy by name, always",
    ("report", 1): "version 2 added attributes, always",
    ("stream-offset", 1): "version 2 added attributes, always",
    ("stream-offset", 2): "version 3 added the limit per reader, always",
}
"""Versions that are only read."""


@pytest.mark.parametrize(
    ("kind", "version", "which"),
    [key for key in EXPECTED if key[:2] not in UPGRADED and key[0] != "assignment-base"],
)
def test_a_value_that_a_version_can_hold_keeps_its_bytes(
    kind: str, version: int, which: str
) -> None:
    """So that software of that version still reads it, and equal values always give equal bytes."""
    assert FORMATS[kind].encode(EXPECTED[kind, version, which]) == golden(kind, version, which)


def test_every_file_is_asserted() -> None:
    named = {f"{kind}-v{version}{which}.json" for kind, version, which in EXPECTED}
    others = {"packed-gzip.json", "packed-bzip2.json", "application-hashes.json"}
    # Whole queries, which tests on a real Spark continue.
    queries = {"query-0.1.0-standalone.json", "query-0.1.0-local.json"}

    assert {path.name for path in FOLDER.glob("*.json")} == named | others | queries


@pytest.mark.parametrize("kind", FORMATS)
def test_no_field_has_its_default_in_every_file(kind: str) -> None:
    """Or a decoder that forgets the field would pass."""
    seen: dict[tuple[str, str], bool] = {}
    newest = FORMATS[kind].version
    for (other, version, _), value in EXPECTED.items():
        if (other, version) == (kind, newest):
            for place, is_default in fields(value):
                seen[place] = seen.get(place, True) and is_default

    forgotten = {(kind, *place) for place, is_default in seen.items() if is_default}
    assert forgotten == {place for place in NOT_STORED if place[0] == kind}


def fields(value: Any) -> Iterator[tuple[tuple[str, str], bool]]:
    """Yields class and name of each field in a value, and whether it has its default."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            inner = getattr(value, field.name)
            yield (type(value).__name__, field.name), inner == default(field)
            yield from fields(inner)
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from fields(inner)
    elif isinstance(value, tuple):
        for inner in value:
            yield from fields(inner)


def default(field: Any) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


# --- write-once -----------------------------------------------------------------------------------


def test_no_golden_file_has_changed() -> None:
    """A format that changes gets a new version, a reader for the former one, and a new file."""
    listed = digests()

    assert {name: digest(FOLDER / name) for name in listed} == dict(listed)
    assert {path.name for path in FOLDER.glob("*.json")} == set(listed), (
        "run `make generate`: it lists new files"
    )


@pytest.mark.parametrize("release", RELEASED)
def test_the_list_only_grows(release: str) -> None:
    count, wanted = RELEASED[release]
    lines = (FOLDER / DIGESTS).read_text(encoding="utf-8").splitlines(keepends=True)[:count]

    assert hashlib.sha256("".join(lines).encode()).hexdigest() == wanted


def test_generate_writes_new_files_and_never_another_one(tmp_path: Path) -> None:
    (tmp_path / DIGESTS).touch()
    write_once("report-v9.json", "{}", tmp_path)
    write_once("report-v9.json", "{}", tmp_path)

    assert list(digests(tmp_path)) == ["report-v9.json"]
    with pytest.raises(
        GoldenChangedError, match=r"report-v9.json is in use.*give the format a new version"
    ):
        write_once("report-v9.json", '{"changed":1}', tmp_path)
    (tmp_path / "report-v9.json").write_text('{"changed":1}\n')
    with pytest.raises(GoldenChangedError, match=r"report-v9.json is in use"):
        write_once("report-v9.json", '{"changed":1}', tmp_path)
