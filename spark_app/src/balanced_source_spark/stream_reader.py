"""Spark's stream reader: plans micro-batches in the planning process.

What is pickled for tasks only reads.

Besides the planning process Spark makes a reader in a process that lives for its pickling alone. So
the planner, with its clients of the source and of the API server, is loaded when planning begins.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from balanced_source.errors import ConnectorError
from balanced_source_adapters.collector import collect_rarely
from balanced_source_adapters.heap import keep_small
from balanced_source_spark.contract.half import SparkHalf, TaskReader, half_of
from balanced_source_spark.contract.half_answers import asked
from balanced_source_spark.ending import end_in_order
from balanced_source_spark.options import Options, query_of
from balanced_source_spark.partition import ReaderPartition
from balanced_source_spark.plain_errors import plain_errors
from balanced_source_spark.quick_imports import quick_imports
from balanced_source_spark.task_samples import measuring

if TYPE_CHECKING:
    import pyarrow as pa

    from balanced_source_spark.planner import StreamPlanner

UNLIMITED: Final = ReadMaxRows(2**63 - 1)
"""The limits of a source are applied by the planner."""


def task_reader(options: Options) -> Callable[[], TaskReader]:
    """Makes what tasks get.

    Pickled instead of a reader, so that a task knows nothing of options and planning.
    """
    return partial(measuring, _task_reader(options))


def _task_reader(options: Options) -> Callable[[], TaskReader]:
    half, query = half_of(options.connector), query_of(options)
    if isinstance(half, SparkHalf):
        from balanced_source_spark.contract.checked_tasks import checked_task

        made = asked(options.connector, half, "task_reader", query)
        return partial(checked_task, options.connector, made, query.schema)
    from balanced_source_spark.contract.readers import ReadersHalf
    from balanced_source_spark.journal.task import JournalTaskReader

    if isinstance(half, ReadersHalf):
        return partial(JournalTaskReader, half, query, options.connector)
    raise ConnectorError(
        f"connector {options.connector!r} is broken: its Spark half reads neither ranges nor"
        " readers"
    )


def check_tasks(options: Options) -> None:
    """Check that tasks can get what they need. Once per query: it makes a copy.

    Raises:
        ConnectorError, ConnectorContractError: they cannot. Names the connector.
    """
    with quick_imports():
        from balanced_source_spark.contract.pickled import check_pickles

        half, query = half_of(options.connector), query_of(options)
        check_pickles(options.connector, half, query, _task_reader(options))


def planner_of(options: Options) -> "StreamPlanner":
    """Return what plans the micro-batches of a query."""
    with quick_imports():
        if options.journal is None:
            from balanced_source_spark.planner import StreamPlanner

            return StreamPlanner(options)
        from balanced_source_spark.journal.planner import JournalPlanner

        return JournalPlanner(options)


class BalancedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """See the module."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def __reduce__(self) -> Any:
        return task_reader(self._options), ()

    @cached_property
    def _planner(self) -> "StreamPlanner":
        # Here, in the planning process: Spark ends it by SIGTERM, and the claim is to be given up
        # then.
        collect_rarely()
        keep_small()
        check_tasks(self._options)
        end_in_order()
        return planner_of(self._options)

    @plain_errors()
    def initialOffset(self) -> dict[str, Any]:
        return self._planner.initialOffset()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return a limit that Spark passes in every micro-batch but that of ``trigger(once=True)``.

        That one tells itself by asking for everything: it has no other sign, and must wait for
        assignment and ends.
        """
        return UNLIMITED

    @plain_errors()
    def prepareForTriggerAvailableNow(self) -> None:
        self._planner.prepareForTriggerAvailableNow()

    @plain_errors()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return self._planner.latestOffset(start, limit)

    @plain_errors()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return self._planner.partitions(start, end)

    def commit(self, end: dict[str, Any]) -> None:
        self._planner.commit(end)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return self._planner.reportLatestOffset()

    def stop(self) -> None:
        if "_planner" in self.__dict__:
            self._planner.stop()

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        # Spark passes what `partitions` returned
        assert isinstance(partition, ReaderPartition)  # noqa: S101
        return task_reader(self._options)().read(partition)
