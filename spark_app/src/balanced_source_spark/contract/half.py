"""The Spark half of a connector.

Options, schema, task reader and planner hooks of one kind of source.

A connector names its half in `Connector.spark`. Spark starts several Python processes per query,
and each of them imports this half. So the module of a half must be cheap to import: clients, Arrow
and planning are imported by the method that needs them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeVar

from balanced_source.api import Source
from balanced_source.assigners import SplitAssigner
from balanced_source_adapters.connectors import ConnectorPart, Connectors, installed
from balanced_source_spark.contract.option_table import Option
from balanced_source_spark.contract.secrets import NO_SECRETS, QuerySecrets
from balanced_source_spark.partition import ReaderPartition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from balanced_source.host.journal import JournalStore
    from balanced_source_spark.contract.hooks import PlannerContext, PlannerHooks

ReadT = TypeVar("ReadT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Generic[ReadT]):
    """What all parts of a half know of their query. Tasks unpickle it.

    Attributes:
        client_id: name that servers see in their logs and quotas; a half may append to it.
        secrets: resolves the Secrets that the source names.
        read: what `SparkHalf.read_options` returned.
        has_metrics: whether the driver serves Prometheus metrics of the query.
        journal: where the journals are; only for a `ReadersHalf`.
        schema: columns of the rows, as Spark has parsed them or as the user has set them; None
            where Spark did not say.
    """

    client_id: str
    read: ReadT
    secrets: QuerySecrets = NO_SECRETS
    has_metrics: bool = False
    journal: "JournalStore | None" = None
    schema: "StructType | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a user chooses for a source of any kind that its driver enumerates itself.

    Attributes:
        assigner: picks the owners of splits.
        is_batch: whether this is a batch query: it reads from the start to the end of what there
            is.
        is_stream: whether this is a streaming query that begins; not while only its columns are
            asked for.
        is_part: whether the source is a part of a hybrid one: it starts at its beginning unless
            told otherwise.
    """

    assigner: SplitAssigner
    is_batch: bool = False
    is_stream: bool = False
    is_part: bool = False


class TaskReader(Protocol):
    """Reads one reader's share of a micro-batch, in a Spark task."""

    def read(self, partition: ReaderPartition) -> "Iterator[pa.RecordBatch]":
        """Return the records of the partition's ranges: each exactly once, and no others.

        There may be no ranges.

        A task may be run again, also at the same time: the same partition must give the same
        records.
        """
        ...


class AnyHalf(ABC, Generic[ReadT]):
    """What Spark's processes ask of one kind of source, however it is read. Stateless.

    A connector derives `SparkHalf` if planning can tell how far each split can be read now, and
    `balanced_source_spark.contract.readers.ReadersHalf` if only reading can tell.

    Keys of options are lower case, because Spark folds them.
    """

    reference: ClassVar[str] = ""
    """Where the options of this kind of source are described, for the message about an unknown
    one: a URL, or words that can follow "described in", such as ``the README of my-connector``."""

    def options(self) -> tuple[Option, ...] | None:
        """Return the options of this kind of source, for the check of names.

        None: names are not checked.
        """
        return None

    @abstractmethod
    def read_options(self, options: Mapping[str, str]) -> ReadT:
        """Return what schema and tasks must know: a value that can be pickled, and nothing secret.

        Raises:
            InvalidSpecError: names the option.
        """

    def secrets(self, options: Mapping[str, str]) -> QuerySecrets:
        """Return what is secret in the options of a query without an operator or local mode.

        Raises:
            InvalidSpecError: names the option; never holds a value.
        """
        return secrets_in(options)

    def notes(self, options: Mapping[str, str]) -> tuple[str, ...]:
        """Return sentences that the user has to know about the options.

        A query logs them when it starts.
        """
        return ()

    @abstractmethod
    def schema(self, read: ReadT) -> "StructType | str":
        """Return the columns of the rows, as a type or as ``number BIGINT, text STRING``."""

    @abstractmethod
    def source(self, options: Mapping[str, str], choices: Choices) -> Source[Any, Any]:
        """Return the source of a query that runs without an operator and without local mode.

        Raises:
            InvalidSpecError: names the option.
        """

    @abstractmethod
    def hooks(self, context: "PlannerContext[ReadT]") -> "PlannerHooks":
        """Return what planning asks while a query runs.

        Called once per query, in the planning process.
        """


class SparkHalf(AnyHalf[ReadT]):
    """The half of a source whose ends are known when a micro-batch is planned: tasks get ranges."""

    @abstractmethod
    def task_reader(self, query: Query[ReadT]) -> Callable[[], TaskReader]:
        """Return what makes the reader of a task.

        It is pickled for every micro-batch: keep it small.
        """


def secrets_in(options: Mapping[str, str]) -> QuerySecrets:
    """Return the secrets in the folder that the options name."""
    folder = options.get("secretsdir")
    return QuerySecrets(folder=Path(folder) if folder else None)


SPARK_HALF: Final = ConnectorPart(
    name="Spark half", base=AnyHalf, derived="SparkHalf or ReadersHalf"
)


def half_of(kind: str, connectors: Connectors | None = None) -> AnyHalf[Any]:
    """Return the Spark half of a connector's kind, among all installed ones by default.

    Raises:
        ConnectorError: there is no such connector, or it is broken.
    """
    half: AnyHalf[Any] = (connectors or installed()).half(
        kind, lambda connector: connector.spark, SPARK_HALF
    )
    return half
