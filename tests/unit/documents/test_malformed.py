"""Documents of another form than expected.

Each ends in an error that names the kind, none in a stray exception.
"""

import json
from typing import Any

import pytest

from balanced_source.documents import columns, envelope, report
from balanced_source.documents.report import HostReport
from balanced_source.errors import CorruptDocumentError, IncompatibleVersionError


def sealed(**changes: Any) -> str:
    """Return a report whose members are changed, or left out if None, with a digest that fits."""
    content = json.loads(report.encode(HostReport(incarnation=1), source="uid"))
    content.pop("digest")
    content = {name: value for name, value in {**content, **changes}.items() if value is not None}
    return envelope.canonical({**content, "digest": envelope.digest(content)})


@pytest.mark.parametrize("version", [True, 0, -1, 1.5, "2", [2], {}])
def test_a_version_that_is_not_a_positive_whole_number_is_corrupt(version: Any) -> None:
    with pytest.raises(CorruptDocumentError, match=r"^HostReport: .* is not a valid version$"):
        report.decode(sealed(version=version))


def test_the_newest_version_is_read_and_a_newer_one_is_named() -> None:
    assert report.decode(sealed(version=report.KIND.version)) == HostReport(incarnation=1)
    with pytest.raises(IncompatibleVersionError, match=str(report.KIND.version + 1)):
        report.decode(sealed(version=report.KIND.version + 1))


@pytest.mark.parametrize(
    "text",
    [
        sealed(kind="Assignment"),
        sealed(more=1),
        sealed(body=None),
        sealed(source=None),
        "[]",
        "1",
        '"kind"',
    ],
)
def test_a_document_of_another_kind_is_corrupt(text: str) -> None:
    with pytest.raises(CorruptDocumentError, match="HostReport: not a document of this kind"):
        report.decode(text)


@pytest.mark.parametrize("body", [{}, {"host": "0"}, [], "text", 7])
def test_a_body_of_another_form_is_corrupt(body: Any) -> None:
    with pytest.raises(CorruptDocumentError, match="HostReport: malformed body"):
        report.decode(sealed(body=body))


def reported(**changes: Any) -> HostReport:
    """Decode a report of which some values are of another form."""
    split = {"positions": {("c", "t", 0): 5}}
    content = json.loads(report.encode(HostReport(incarnation=1, **split), source="uid"))
    return report.decode(sealed(body={**content["body"], **changes}))


@pytest.mark.parametrize("lag", [-1, "7", 1.5, True, 2**63, {}])
def test_a_lag_that_is_not_a_valid_number_of_records_is_unknown(lag: Any) -> None:
    """Otherwise no status could be written, and the autoscaler would count with it."""
    assert reported(lag=lag).lag is None
    assert reported(lag=7).lag == 7


@pytest.mark.parametrize("position", ["5", 1.5, True, [5]])
@pytest.mark.parametrize("table", ["positions", "retained"])
def test_a_position_that_is_no_number_is_corrupt(table: str, position: Any) -> None:
    values = columns.encode_map({("c", "t", 0): position})

    with pytest.raises(CorruptDocumentError, match="not every position is a number"):
        reported(**{table: values})


def test_a_document_of_another_source_names_both() -> None:
    assert report.decode(sealed(), source="uid") == HostReport(incarnation=1)
    with pytest.raises(CorruptDocumentError, match="belongs to source uid, not to other"):
        report.decode(sealed(), source="other")


def test_a_change_by_hand_is_noticed() -> None:
    text = report.encode(HostReport(incarnation=1), source="uid")
    with pytest.raises(CorruptDocumentError, match="changed by another program"):
        report.decode(text.replace('"incarnation":1', '"incarnation":2'))


@pytest.mark.parametrize(
    "rows",
    [
        [[["c", 1.5], [[0, 1]]]],
        [[["c", None], [[0, 1]]]],
        [[[["c"], "t"], [[0, 1]]]],
        [[["c", "t"], [[0, 0]]]],
        [[["c", "t"], [[0, -1]]]],
        [[["c", "t"], [[0, 101]]]],
        [[["c", "t"], [[0, 100], [100, 1]]]],
        [[["c", "t"], [[0, 100]]], [["c", "u"], [[0, 1]]]],
        [[["c", "t"], [[0]]]],
        [[["c", "t"]]],
        7,
    ],
)
def test_a_table_of_another_form_is_corrupt(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MAX_SPLITS", 100)
    assert len(columns.decode_ids([[["c", "t"], [[0, 100]]]])) == 100
    with pytest.raises(CorruptDocumentError, match="malformed list of splits"):
        columns.decode_ids(rows)


def test_a_table_with_a_value_too_many_or_too_few_is_corrupt() -> None:
    for values in ([1], [1, 2, 3]):
        with pytest.raises(CorruptDocumentError, match="malformed table of splits"):
            columns.decode_map([[["c", "t"], [[0, 2]], values]])


def test_every_value_of_a_table_is_checked() -> None:
    table: dict[Any, Any] = {("c", "t", 0): 1, ("c", "t", 1): "one"}
    with pytest.raises(CorruptDocumentError, match="not every value is of type int"):
        columns.checked_values(table, int)


def test_a_family_may_list_texts_beside_runs_of_numbers() -> None:
    rows: list[Any] = [[["c", "t"], ["a", [0, 2], "b", [7, 1]]]]

    expected = {("c", "t", last) for last in ("a", 0, 1, "b", 7)}
    assert columns.decode_ids(rows) == expected
