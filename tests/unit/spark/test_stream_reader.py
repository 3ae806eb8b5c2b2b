"""What Spark asks of a stream reader goes to the planner, which the first question makes."""

import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from balanced_source.errors import ConnectorError
from balanced_source_spark import batch_reader, planner, stream_reader
from balanced_source_spark.batch_reader import BalancedBatchReader
from balanced_source_spark.contract.half import AnyHalf
from balanced_source_spark.journal import planner as journal_planner
from balanced_source_spark.options import Options, parse_options
from balanced_source_spark.partition import ReaderPartition
from balanced_source_spark.stream_reader import BalancedStreamReader, planner_of

OPTIONS = parse_options({"kafka.bootstrap.servers": "b:9", "subscribe": "t"})
PART = ReaderPartition(subtask_id=0, ranges=())


class Planner:
    """Notes what it is asked, and answers with the question."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., str]:
        def answer(*arguments: Any) -> str:
            self.asked.append((name, *arguments))
            return f"answer to {name}"

        return answer


@pytest.fixture(name="made")
def fixture_made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a reader does before it plans, in this order."""
    made: list[str] = []
    for name in ("collect_rarely", "keep_small", "end_in_order"):
        monkeypatch.setattr(stream_reader, name, lambda name=name: made.append(name))
    monkeypatch.setattr(stream_reader, "check_tasks", lambda _: made.append("check_tasks"))
    return made


@pytest.fixture(name="planned")
def fixture_planned(made: list[str], monkeypatch: pytest.MonkeyPatch) -> Planner:
    planned = Planner()

    def planner_of(options: Options) -> Planner:
        assert options is OPTIONS
        made.append("planner")
        return planned

    monkeypatch.setattr(stream_reader, "planner_of", planner_of)
    return planned


def test_the_planning_process_is_prepared_once_before_it_plans(
    planned: Planner, made: list[str]
) -> None:
    """Spark ends it by SIGTERM, and the claim is to be given up then."""
    reader = BalancedStreamReader(OPTIONS)
    assert made == [], "a process that only pickles a reader must not plan"

    reader.initialOffset()
    reader.reportLatestOffset()

    assert made == ["collect_rarely", "keep_small", "check_tasks", "end_in_order", "planner"]
    assert planned.asked == [("initialOffset",), ("reportLatestOffset",)]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("initialOffset", ()),
        ("latestOffset", ({"a": 1}, ReadMaxRows(5))),
        ("partitions", ({"a": 1}, {"a": 2})),
        ("reportLatestOffset", ()),
    ],
)
def test_the_planner_answers(planned: Planner, name: str, arguments: tuple[Any, ...]) -> None:
    assert getattr(BalancedStreamReader(OPTIONS), name)(*arguments) == f"answer to {name}"
    assert planned.asked == [(name, *arguments)]


@pytest.mark.parametrize(
    ("name", "arguments"), [("prepareForTriggerAvailableNow", ()), ("commit", ({"a": 1},))]
)
def test_the_planner_is_told(planned: Planner, name: str, arguments: tuple[Any, ...]) -> None:
    getattr(BalancedStreamReader(OPTIONS), name)(*arguments)

    assert planned.asked == [(name, *arguments)]


def test_a_reader_that_has_planned_nothing_stops_without_a_planner(
    planned: Planner, made: list[str]
) -> None:
    reader = BalancedStreamReader(OPTIONS)
    reader.stop()
    assert made == []

    reader.initialOffset()
    reader.stop()
    assert planned.asked == [("initialOffset",), ("stop",)]


def test_spark_passes_a_limit_that_is_none() -> None:
    """The planner tells `trigger(once=True)` by another one, and applies the source's limits."""
    limit = BalancedStreamReader(OPTIONS).getDefaultReadLimit()

    assert isinstance(limit, ReadMaxRows)
    assert limit.max_rows == 2**63 - 1


@pytest.mark.parametrize(
    ("reader", "module"),
    [(BalancedStreamReader, stream_reader), (BalancedBatchReader, batch_reader)],
)
def test_the_reader_that_spark_has_not_pickled_reads_as_its_task_does(
    reader: type[BalancedStreamReader] | type[BalancedBatchReader],
    module: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = SimpleNamespace(read=lambda part: iter([part]))
    monkeypatch.setattr(module, "task_reader", lambda _: lambda: task)

    assert list(reader(OPTIONS).read(PART)) == [PART]


@pytest.mark.parametrize(
    ("journal", "module", "name"),
    [(None, planner, "StreamPlanner"), ("a journal", journal_planner, "JournalPlanner")],
)
def test_a_query_with_a_journal_is_planned_by_its_records(
    journal: Any, module: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, lambda options: (name, options))
    options: Any = SimpleNamespace(journal=journal)

    assert planner_of(options) == (name, options)


class Nothing(AnyHalf[Any]):
    """Reads neither ranges nor readers."""

    def read_options(self, options: Any) -> Any:
        return None

    def schema(self, read: Any) -> str:
        return "n BIGINT"

    def source(self, options: Any, choices: Any) -> Any:
        raise NotImplementedError

    def hooks(self, context: Any) -> Any:
        raise NotImplementedError


def test_a_half_that_reads_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_reader, "half_of", lambda _: Nothing())

    with pytest.raises(ConnectorError, match="'kafka' is broken: its Spark half reads neither"):
        pickle.dumps(BalancedStreamReader(OPTIONS))
