"""Names, tables and sums in documents, as text: other versions rely on each of them."""

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.documents import assignment, columns, parts
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.envelope import DocumentKind, decode, encode
from balanced_source.documents.environment import (
    PREFIX,
    DriverEnvironment,
    from_variables,
    to_variables,
)
from balanced_source.documents.journal import JournalPoint, point_from_json, point_to_json
from balanced_source.documents.report import MILLIS_BEHIND, millis_behind, records_behind
from balanced_source.documents.storage import base_of
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import CorruptDocumentError
from balanced_source.host.finish import STOP, with_ends
from support.builders import make_report

SECRETS_DIR = f"{PREFIX}SECRETS_DIR"
REPORT = DocumentKind(name="report", version=2, upgrades={})
A, B, C = ("k", "t", 0), ("k", "t", 1), ("k", "t", 5)


def test_the_first_host_has_the_name_of_its_source_and_others_a_suffix_of_its_uid() -> None:
    token = hashlib.sha256(b"uid-1/2").hexdigest()[:6]

    assert base_of("orders", uid="uid-1") == "orders"
    assert base_of("orders", "2", uid="uid-1") == f"orders-h2-{token}"


def test_partitions_of_a_topic_are_written_as_ranges() -> None:
    table = {A: 1, B: 1, C: 1, ("k", "t", 6): 1, ("k", "u", "x"): 1}

    rows = columns.encode_map(table)

    assert [row[:2] for row in rows] == [[["k", "t"], [[0, 2], [5, 2]]], [["k", "u"], ["x"]]]
    assert columns.decode_map(rows) == table


def test_a_part_is_named_by_half_of_its_digest() -> None:
    (part,) = parts.cut("a document")

    assert part.digest == hashlib.sha256(part.data).hexdigest()[:32]


def test_a_driver_without_mounted_secrets_has_no_folder_of_them() -> None:
    known = DriverEnvironment(name="orders", namespace="jobs", uid="1")

    assert from_variables(to_variables(known)) == known
    assert from_variables({**to_variables(known), SECRETS_DIR: ""}) == known


@pytest.mark.parametrize("spaces", [(",", ":"), (", ", ": ")])
def test_a_document_is_accepted_with_any_spaces_and_not_with_another_content(
    spaces: tuple[str, str],
) -> None:
    content = json.loads(encode(REPORT, "uid-1", {"host": "0"}))

    assert decode(REPORT, json.dumps(content, separators=spaces)) == {"host": "0"}
    content["body"]["host"] = "1"
    with pytest.raises(CorruptDocumentError, match="digest differs"):
        decode(REPORT, json.dumps(content, separators=spaces))


@pytest.mark.parametrize(
    ("behind", "slowest"),
    [((5, 70), 70), ((70, 5), 70), ((5, None), None), ((), None)],
)
def test_the_slowest_host_counts_unless_one_is_unknown(
    behind: tuple[int | None, ...], slowest: int | None
) -> None:
    reports = [
        make_report(positions={A: 0}, metrics={} if millis is None else {MILLIS_BEHIND: millis})
        for millis in behind
    ]

    assert millis_behind([*reports, make_report(metrics={})]) == slowest


def test_a_split_without_a_known_end_gets_its_stop_when_it_is_read() -> None:
    point = JournalPoint(journal="a5f3", number=1, finished=frozenset({A, B, C}))
    offset = StreamOffset(
        epoch=1, positions={A: 7, B: None}, attributes={B: {STOP: 3}}, journal=point
    )

    assert with_ends(offset) == {A: {STOP: 7}, B: {STOP: 3}}
    assert with_ends(StreamOffset(epoch=1, positions={A: 7})) == {}
    empty = StreamOffset(epoch=1, positions={A: None}, attributes={A: {"zone": 1}}, journal=point)
    assert with_ends(empty) == {A: {"zone": 1, STOP: 0}}, "nothing was ever in it"


def test_splits_that_are_held_are_written_only_where_there_are_some() -> None:
    """Offsets without them read as those of older releases do."""
    point = JournalPoint(journal="a5f3", number=1)
    held = replace(point, held=frozenset({A, B}))

    assert "held" not in point_to_json(point)
    assert point_from_json(point_to_json(point)) == point
    assert point_from_json(point_to_json(held)) == held


@pytest.mark.parametrize(
    ("lags", "together"),
    [((), None), ((3,), 3), ((3, 0, 4), 7), ((3, None), None), ((None,), None)],
)
def test_the_lag_of_all_hosts_is_known_if_that_of_each_is(
    lags: tuple[int | None, ...], together: int | None
) -> None:
    """A sum over some of the hosts would look as if the source had caught up."""
    reports = [make_report(lag=lag) for lag in lags]

    assert records_behind(reports) == together
    assert records_behind([*reports, None]) is None


def test_hosts_are_written_in_their_order() -> None:
    """Equal assignments have equal texts, whatever the order of a set is."""
    names = [str(number) for number in range(9)]
    written: Any = assignment.to_json(
        Assignment(epoch=1, parallelism=1, idle_hosts=frozenset(reversed(names)))
    )

    assert written["idleHosts"] == names
    assert "idleHosts" not in assignment.to_json(Assignment(epoch=1, parallelism=1))
