"""What a Spark half returns is checked where a query asks for it."""

from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql.types import LongType, StructType

from balanced_source.assigners import RoundRobinAssigner
from balanced_source.errors import ConnectorError, InvalidSpecError
from balanced_source_spark.contract.checked_hooks import hooks_of
from balanced_source_spark.contract.ddl import check_ddl, columns_of
from balanced_source_spark.contract.half import Choices
from balanced_source_spark.contract.half_answers import asked
from balanced_source_spark.contract.hooks import PlannerContext, PlannerHooks
from balanced_source_spark.contract.option_table import Option
from balanced_source_spark.data_source import BalancedDataSource
from balanced_source_spark.hybrid.options import part_reads
from balanced_source_spark.option_list import options_of
from balanced_source_spark.options import parse_options
from balanced_source_spark.stream_reader import check_tasks
from support.tapes import Shelf, TapeHalf, TapeSource

CHOICES = Choices(assigner=RoundRobinAssigner())
REPORT = "Report this to the authors of the package, with the traceback from the log"


class Half(TapeHalf):
    """Returns what a test says."""

    def __init__(self, **answers: Any) -> None:
        super().__init__(Shelf())
        for name, answer in answers.items():
            setattr(self, name, lambda *_, answer=answer: answer)


@pytest.mark.parametrize(
    ("method", "answer", "expected"),
    [
        ("source", None, "it returned a NoneType, and a Source was expected"),
        ("source", "tapes", "it returned a str, and a Source was expected"),
        ("schema", None, "it returned a NoneType, and a StructType, or a text such as 'number"),
        ("schema", ["a INT"], "it returned a list, and a StructType"),
        ("options", ["url"], "it returned a tuple with a str, and an Option was expected"),
        ("options", Option(name="a", meaning="b"), "it returned a Option, and a tuple of Option"),
        ("notes", "note", "it returned a str, and a tuple of texts was expected"),
        ("notes", (1,), "it returned a sequence with a int, and a str was expected"),
        ("secrets", {}, "it returned a dict, and a QuerySecrets was expected"),
        ("task_reader", None, "it returned a NoneType, and a function that makes the reader"),
    ],
)
def test_an_answer_of_another_type_is_named(method: str, answer: Any, expected: str) -> None:
    with pytest.raises(ConnectorError) as caught:
        asked("tapes", Half(**{method: answer}), method)

    said = str(caught.value)
    assert said.startswith(f"connector 'tapes' of an unknown package failed in {method}: TypeError")
    assert expected in said
    assert said.endswith(REPORT)


def test_a_source_of_another_kind_is_named() -> None:
    with pytest.raises(
        ConnectorError, match=r"it returned a Source of kind 'tapes', not 'files'\. Report"
    ):
        asked("files", Half(), "source", {}, CHOICES)


def test_right_answers_are_passed_on() -> None:
    half = Half(notes=["n"], schema=StructType().add("a", LongType()))

    assert asked("tapes", half, "source", {}, CHOICES) == TapeSource()
    assert asked("tapes", half, "options") is None
    assert asked("tapes", half, "notes", {}) == ["n"]
    assert asked("tapes", half, "schema", None).names == ["a"]
    assert asked("tapes", Half(), "schema", None) == "tape STRING, number BIGINT"


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        ("", "lack one: write them as name TYPE, name TYPE"),
        ("a INT, , b INT", "lack one: write them as name TYPE, name TYPE"),
        ("a", "column 'a' has no type: write it as name TYPE"),
        ("a INT, `b c`", "column 'b c' has no type"),
        ("a STRNG", r"column 'a' has type 'STRNG', which Spark does not know \(did you mean STRI"),
        ("a: number", "column 'a' has type 'number', which Spark does not know"),
        ("a STRUCT<b: INT", "a bracket or a quote that is not closed"),
        ("a INT) b INT", "a bracket or a quote that is not closed"),
        ("`a INT", "a bracket or a quote that is not closed"),
        ("a INT, A STRING", "two columns have the same name, 'a' and 'A': rename one of them"),
        ("a INT, `a` STRING", "two columns have the same name, 'a' and 'a'"),
    ],
)
def test_columns_that_spark_refuses_are_named(ddl: str, said: str) -> None:
    with pytest.raises(ConnectorError, match=f"failed in schema: ValueError: .*{said}"):
        asked("tapes", Half(schema=ddl), "schema", None)
    with pytest.raises(InvalidSpecError, match=f"option schema: .*{said}"):
        BalancedDataSource(
            {"connector": "files", "path": "/f", "fileFormat": "json", "schema": ddl or " "}
        ).schema()


@pytest.mark.parametrize(
    "ddl",
    [
        "a INT",
        "a: int, b:STRING",
        "`a``b` BIGINT NOT NULL, `c, d` DECIMAL(10, 2)",
        "a STRUCT<b: INT, c: ARRAY<MAP<STRING, INT>>> NOT NULL COMMENT 'it\\'s (one', b DATE",
        'a TIMESTAMP_NTZ COMMENT "a, `b", b INTERVAL DAY TO SECOND',
        "a CHAR(3), b VARCHAR(4), c TIMESTAMP WITHOUT TIME ZONE, d VARIANT, e STRING COLLATE UTF8",
    ],
)
def test_columns_that_spark_accepts_are_passed_on(ddl: str) -> None:
    check_ddl(ddl)


def test_a_quoted_name_keeps_its_commas() -> None:
    assert [name for name, _ in columns_of("`a, b` INT, c STRING COMMENT 'd\\', e INT'")] == [
        "a, b",
        "c",
    ]


def test_columns_of_the_user_with_one_name_are_an_error_of_the_user() -> None:
    columns = StructType().add("a", LongType()).add("A", LongType())

    with pytest.raises(InvalidSpecError, match="schema: two columns have the same name, 'a' and"):
        parse_options({"connector": "files", "path": "/f"}, schema=columns)


def replaced(monkeypatch: pytest.MonkeyPatch, **answers: Any) -> Half:
    """Let the connector of files have another half."""
    half = Half(**answers)
    for module in ("options", "stream_reader", "option_list", "contract.half", "hybrid.options"):
        monkeypatch.setattr(f"balanced_source_spark.{module}.half_of", lambda *_: half)
    return half


FILES = {"connector": "files", "journalLocation": "/j"}


def test_a_query_says_which_answer_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced(monkeypatch, source=None)
    with pytest.raises(ConnectorError, match="'files' of balanced-source failed in source: Type"):
        parse_options(FILES)

    replaced(monkeypatch, schema=None)
    monkeypatch.setattr(TapeSource, "kind", "files")
    with pytest.raises(ConnectorError, match="'files' of balanced-source failed in schema: Type"):
        BalancedDataSource(FILES).schema()

    replaced(monkeypatch, options=[1])
    with pytest.raises(ConnectorError, match="'files' of balanced-source failed in options: Type"):
        options_of("files")


def test_a_query_says_that_no_task_reader_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    half = replaced(monkeypatch, task_reader=None)
    monkeypatch.setattr("balanced_source_spark.stream_reader.SparkHalf", type(half))
    monkeypatch.setattr("balanced_source_spark.options.SparkHalf", type(half))
    monkeypatch.setattr(TapeSource, "kind", "files")
    options = parse_options(FILES)

    with pytest.raises(ConnectorError, match="'files' of balanced-source failed in task_reader"):
        check_tasks(options)


def test_a_part_says_which_answer_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    half = replaced(monkeypatch, options=7)
    monkeypatch.setattr("balanced_source_spark.hybrid.options.SparkHalf", type(half))

    with pytest.raises(ConnectorError, match="'files' of balanced-source failed in options: Type"):
        part_reads({"parts": '[{"connector": "files"}]'})


class OfRanges(PlannerHooks):
    """Hooks for a half whose tasks get ranges."""

    def ends(self, *_: Any) -> Mapping[Any, Any]:
        return {}


def test_hooks_of_a_half_with_readers_are_reader_hooks() -> None:
    context: PlannerContext[None] = None  # type: ignore[assignment]

    with pytest.raises(
        ConnectorError,
        match="failed in hooks: TypeError: it returned a OfRanges, and ReaderHooks were expected",
    ):
        hooks_of(Half(hooks=OfRanges()), context, connector="tapes")
