"""Options of a hybrid source: which part an error is about, and where it can be seen."""

import json
import pickle
from typing import Any

import pytest
from pyspark.sql.types import StructType

from balanced_source.api import Measure
from balanced_source.errors import BalancedSourceError, ConnectorError, InvalidSpecError
from balanced_source_spark.contract.option_table import is_embedded
from balanced_source_spark.data_source import BalancedDataSource
from balanced_source_spark.failed_reader import FailedReader
from balanced_source_spark.hybrid import options as module
from balanced_source_spark.hybrid.options import given_parts, part_reads
from support.tapes import Shelf, TapeHalf

FILES: dict[str, Any] = {
    "connector": "files",
    "path": "/data/in",
    "fileFormat": "parquet",
    "schema": "value BINARY",
    "metadataColumns": False,
}
KAFKA: dict[str, Any] = {
    "connector": "kafka",
    "kafka.bootstrap.servers": "b:1",
    "subscribe": "orders",
    "columns": "value",
}


def options(*parts: dict[str, Any]) -> dict[str, str]:
    return {"connector": "hybrid", "parts": json.dumps(parts)}


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ({"connector": "files"}, "option parts[1].paths"),
        ({**KAFKA, "startingOffsets": "soon"}, "option parts[1].startingOffsets"),
        ({**KAFKA, "subscripe": "orders"}, "option parts[1]"),
    ],
)
def test_an_option_of_a_part_is_named_with_its_part(part: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidSpecError) as caught:
        BalancedDataSource(options(FILES, part)).schema()

    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: ")
    assert str(caught.value).count("option ") <= 2


def test_the_source_has_the_columns_of_its_parts() -> None:
    assert BalancedDataSource(options(FILES, KAFKA)).schema() == FILES["schema"]


def test_a_part_whose_connector_is_not_installed_is_named() -> None:
    with pytest.raises(ConnectorError, match=r"option parts\[0\]: no connector of kind .tapes."):
        part_reads(options({"connector": "tapes"}, KAFKA))


def test_a_query_that_cannot_be_read_says_why_at_spark_s_first_question() -> None:
    """Spark's planning process would hide what `streamReader` raises."""
    reader = BalancedDataSource(options(FILES, KAFKA)).streamReader(StructType())

    assert isinstance(reader, FailedReader)
    for ask in (
        reader.initialOffset,
        lambda: reader.latestOffset({}, None),
        lambda: reader.partitions({}, {}),
        lambda: list(reader.read(None)),
        pickle.loads(pickle.dumps(reader)).initialOffset,  # noqa: S301 - made here
    ):
        with pytest.raises(BalancedSourceError, match="option stateDir: is missing"):
            ask()
    reader.stop()


@pytest.mark.parametrize(
    "ids", ["a", {"orders": 5}, {"orders": ""}, ["orders"], {"orders": "x", "returns": None}]
)
def test_ids_of_topics_are_named_with_their_part(ids: Any) -> None:
    part = {**KAFKA, "startAfter": {"offsets": {"topicIds": ids}}}

    with pytest.raises(InvalidSpecError) as caught:
        part_reads(options(FILES, part))

    assert caught.value.field == "option parts[1].startAfter.offsets.topicIds"


@pytest.mark.parametrize(
    ("start_after", "start"),
    [
        ({"time": "written_at"}, Measure(time="written_at")),
        ({"offsets": {}}, Measure(offsets=("topic", "partition", "offset"))),
        (
            {"offsets": {"topic": "t", "offset": "o"}},
            Measure(offsets=("t", "partition", "o")),
        ),
    ],
)
def test_a_part_starts_where_the_columns_of_the_part_before_say(
    start_after: dict[str, Any], start: Measure
) -> None:
    *_, given = given_parts(options(FILES, {**KAFKA, "startAfter": start_after}))

    assert given.start == start


def test_ids_of_topics_are_part_of_the_start() -> None:
    part = {**KAFKA, "startAfter": {"offsets": {"topicIds": {"orders": "x"}}}}

    *_, given = given_parts(options(FILES, part))

    assert given.start == Measure(
        offsets=("topic", "partition", "offset"), identities=(("orders", "x"),)
    )


@pytest.mark.parametrize("column", [5, "", ["topic"], None])
def test_a_column_of_offsets_is_named_with_its_part(column: Any) -> None:
    part = {**KAFKA, "startAfter": {"offsets": {"partition": column}}}

    with pytest.raises(InvalidSpecError, match="expected the name of a column") as caught:
        part_reads(options(FILES, part))

    assert caught.value.field == "option parts[1].startAfter.offsets.partition"


@pytest.mark.parametrize("name", ["stateDir", "secretsDir"])
def test_an_option_of_the_query_among_those_of_a_part_is_refused(name: str) -> None:
    """It would count for this part alone, or for none."""
    with pytest.raises(
        InvalidSpecError, match="is an option of the query: set it beside"
    ) as caught:
        part_reads(options({**FILES, name: "/data/state"}, KAFKA))

    assert caught.value.field == f"option parts[0].{name}"


@pytest.mark.parametrize("text", ['{"connector": "kafka"}', '["kafka"]', '[{}, "kafka"]', "1"])
def test_parts_must_be_objects_in_an_array(text: str) -> None:
    with pytest.raises(InvalidSpecError, match="expected a JSON array of objects"):
        part_reads({"parts": text})


def test_parts_that_are_nested_too_deeply_are_no_defect_of_the_connector() -> None:
    with pytest.raises(InvalidSpecError, match="expected a JSON array of objects"):
        part_reads({"parts": "[" * 100_000})


def test_a_hybrid_source_without_parts_is_refused() -> None:
    with pytest.raises(InvalidSpecError, match="is missing: list the parts") as caught:
        part_reads({"connector": "hybrid"})

    assert caught.value.field == "option parts"


@pytest.mark.parametrize("kind", [None, "", "hybrid"])
def test_a_part_without_a_connector_of_parts_is_told_which_there_are(kind: str | None) -> None:
    part = {} if kind is None else {"connector": kind}

    with pytest.raises(InvalidSpecError, match=r"connector is .*: name one of ") as caught:
        part_reads(options(FILES, part))

    assert caught.value.field == "option parts[1]"
    offered = str(caught.value).rpartition("name one of ")[2].split(", ")
    assert {"files", "kafka"} <= set(offered)
    assert "hybrid" not in offered


def test_a_connector_whose_tasks_get_readers_is_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """No one knows how far its splits can be read, and so when the next part begins."""
    monkeypatch.setattr(module, "half_of", lambda _: TapeHalf(Shelf()))

    with pytest.raises(InvalidSpecError, match="cannot be a part of a hybrid source") as caught:
        given_parts(options({"connector": "tapes"}))

    assert caught.value.field == "option parts[0]"


@pytest.mark.parametrize(
    "start_after",
    [
        "2026-01-01",
        {},
        {"time": ""},
        {"time": 5},
        {"time": "at", "offsets": {}},
        {"offsets": "offset"},
        {"offsets": {"topics": "t"}},
    ],
)
def test_a_start_that_is_none_is_named_with_its_part(start_after: Any) -> None:
    part = {**KAFKA, "startAfter": start_after}

    with pytest.raises(InvalidSpecError, match=r'expected \{"time": "column"\} or') as caught:
        part_reads(options(FILES, part))

    assert caught.value.field == "option parts[1].startAfter"


@pytest.mark.parametrize(
    ("options", "embedded"),
    [({}, True), ({"source": "orders"}, False), ({"assignmentdir": "/a"}, False)],
)
def test_a_driver_assigns_the_splits_unless_an_operator_or_another_process_does(
    options: dict[str, str], *, embedded: bool
) -> None:
    assert is_embedded(options) is embedded
