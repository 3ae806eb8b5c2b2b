"""What tasks cannot get is said when a query is planned: which connector brings it, and what."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from balanced_source.errors import ConnectorContractError, ConnectorError
from balanced_source_spark import stream_reader
from balanced_source_spark.batch_reader import BalancedBatchReader
from balanced_source_spark.contract.half import Query, SparkHalf
from balanced_source_spark.options import Options
from balanced_source_spark.stream_reader import BalancedStreamReader, check_tasks
from support.tapes import Shelf, TapeHalf
from support.world import kafka_source

SAID = "connector 'files' of balanced-source breaks its contract: {} cannot be pickled for tasks: "


@dataclass
class Ranges(SparkHalf[Any]):
    """Makes task readers with something in their hands."""

    held: Callable[[Query[Any]], Any] = field(default=lambda query: query.read)

    def read_options(self, options: Any) -> Any:
        return None

    def schema(self, read: Any) -> str:
        return "n BIGINT"

    def source(self, options: Any, choices: Any) -> Any:
        raise NotImplementedError

    def hooks(self, context: Any) -> Any:
        raise NotImplementedError

    def task_reader(self, query: Query[Any]) -> Any:
        return partial(dict, held=self.held(query))


class Unpicklable:
    """Says what it wants."""

    def __reduce__(self) -> Any:
        raise KeyError("a client")


def options(read: Any = None) -> Options:
    return Options(connector="files", read=read, embedded=kafka_source("c"))


@pytest.fixture(name="use")
def fixture_use(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    return lambda half: monkeypatch.setattr(stream_reader, "half_of", lambda _: half)


@pytest.mark.parametrize(
    ("half", "read", "what", "why"),
    [
        (Ranges(), threading.Lock(), "what read_options returned", "TypeError: cannot pickle '_th"),
        (Ranges(), Unpicklable(), "what read_options returned", "KeyError: 'a client'"),
        (
            Ranges(lambda _: Unpicklable()),
            None,
            "what task_reader returned",
            "KeyError: 'a client'",
        ),
        (Ranges(lambda _: threading.Lock()), None, "what task_reader returned", "TypeError: "),
    ],
)
def test_what_cannot_be_pickled_is_named(
    use: Callable[[Any], None], half: Any, read: Any, what: str, why: str
) -> None:
    use(half)
    with pytest.raises(ConnectorContractError) as caught:
        check_tasks(options(read))

    assert str(caught.value).startswith(SAID.format(what) + why)
    assert str(caught.value).endswith(
        ". Leave clients, locks and open files to the task, which makes them when it reads"
    )


def test_a_half_of_readers_travels_itself(use: Callable[[Any], None]) -> None:
    half = TapeHalf(Shelf())
    half.lock = threading.Lock()  # type: ignore[attr-defined]
    use(half)

    with pytest.raises(ConnectorContractError, match="its Spark half cannot be pickled"):
        check_tasks(options())


def test_it_is_said_before_spark_pickles_anything(use: Callable[[Any], None]) -> None:
    use(Ranges())
    with pytest.raises(ConnectorContractError, match="what read_options returned"):
        BalancedBatchReader(options(threading.Lock()))
    with pytest.raises(ConnectorContractError, match="what read_options returned"):
        BalancedStreamReader(options(threading.Lock())).initialOffset()


def test_what_tasks_do_not_get_need_not_be_pickled(use: Callable[[Any], None]) -> None:
    use(Ranges(lambda _: 1))
    check_tasks(options(threading.Lock()))


def test_a_task_reader_that_fails_is_named_when_the_query_is_planned(
    use: Callable[[Any], None],
) -> None:
    def fails(_: Query[Any]) -> Any:
        raise KeyError("url")

    use(Ranges(fails))
    with pytest.raises(ConnectorError, match="failed in task_reader: KeyError: 'url'"):
        check_tasks(options())
