"""What a connector raises by mistake in a task is a sentence: connector, where, what to do."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import LongType, StringType, StructType

from balanced_source.documents.journal import FetchLimits, RecordKey
from balanced_source.errors import (
    ConnectorContractError,
    ConnectorError,
    ContractViolationError,
    InvalidSpecError,
    JournalError,
)
from balanced_source.host.journaling import Share
from balanced_source_spark.contract.checked_tasks import checked_task
from balanced_source_spark.contract.half import Query
from balanced_source_spark.contract.row_columns import RowColumns
from balanced_source_spark.journal.task import JournalTaskReader
from balanced_source_spark.journal_stores.folder import FolderJournal
from balanced_source_spark.partition import ReaderPartition
from support.tapes import SHELF, Shelf, TapeHalf

PART = ReaderPartition(subtask_id=0, ranges=())
ROWS = pa.RecordBatch.from_pydict({"n": [1]})
REPORT = "Report this to the authors of the package, with the traceback from the log"


@dataclass
class Ranges:
    """Yields one batch, then fails."""

    error: BaseException | None = None
    first: Any = field(default_factory=lambda: ROWS)

    def read(self, partition: ReaderPartition) -> Iterator[Any]:
        yield self.first
        if self.error is not None:
            raise self.error


def test_a_task_reader_that_fails_is_named_with_its_connector() -> None:
    batches = checked_task("files", lambda: Ranges(KeyError("url"))).read(PART)

    assert next(batches) == ROWS
    with pytest.raises(ConnectorError) as caught:
        next(batches)

    assert str(caught.value) == (
        "connector 'files' of balanced-source failed in read of its task reader: KeyError: 'url'."
        f" {REPORT}"
    )
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_task_reader_that_raises_the_end_of_a_generator_is_named() -> None:
    batches = checked_task("files", lambda: Ranges(GeneratorExit())).read(PART)
    next(batches)

    with pytest.raises(ConnectorError, match=r"read of its task reader: GeneratorExit"):
        next(batches)


def test_closing_the_generator_of_a_task_is_no_mistake() -> None:
    """A query that needs a few rows only closes it."""
    batches = checked_task("files", Ranges).read(PART)
    next(batches)

    with contextlib.closing(batches):  # type: ignore[type-var] # a generator
        pass


def test_a_task_reader_that_is_cut_off_is_to_be_checked_first() -> None:
    batches = checked_task("files", lambda: Ranges(ConnectionResetError("peer"))).read(PART)

    with pytest.raises(
        ConnectorError, match=r"Check that what it reads can be reached\. If it can"
    ):
        list(batches)


def test_a_task_reader_that_yields_something_else_is_told_what_was_expected() -> None:
    with pytest.raises(ConnectorError, match=r"it yielded a tuple, and a pyarrow\.RecordBatch was"):
        list(checked_task("files", lambda: Ranges(first=(1,))).read(PART))


def test_the_factory_of_a_task_reader_is_named() -> None:
    def make() -> Any:
        raise ValueError("no client")

    with pytest.raises(ConnectorError, match="failed in the factory that task_reader returned"):
        checked_task("files", make)


def test_an_error_of_this_project_stays_as_it_is() -> None:
    error = JournalError("said in words")

    with pytest.raises(JournalError) as caught:
        list(checked_task("files", lambda: Ranges(error)).read(PART))

    assert caught.value is error


@dataclass
class Half(TapeHalf):
    """Its own methods or those of its reader are replaced."""

    of_half: dict[str, Callable[..., Any]] = field(default_factory=dict)
    of_reader: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, method in self.of_half.items():
            setattr(self, name, method)

    def reader(self, *args: Any) -> Any:
        made = super().reader(*args)
        for name, method in self.of_reader.items():
            setattr(made, name, method)
        return made


@pytest.fixture
def journal(tmp_path: Path) -> FolderJournal:
    made = FolderJournal(tmp_path / "j")
    made.create("j")
    return made


def attempt(journal: FolderJournal, half: Half, columns: StructType | None = None) -> int:
    """Run the task; return the number of its rows."""
    share = Share(
        key=RecordKey("j", 1, 0),
        parallelism=1,
        limits=FetchLimits(wait_millis=20),
        starts={(SHELF, "a"): 0},
    )
    part = ReaderPartition(subtask_id=0, ranges=(), settings={"tapes": {}}, share=share)
    query = Query(client_id="c", read=None, journal=journal, schema=columns)
    return sum(batch.num_rows for batch in JournalTaskReader(half, query, "files").read(part))


def fails(*_: Any) -> Any:
    raise KeyError("url")


def shelf() -> Shelf:
    return Shelf(lengths={"a": 5})


def test_a_reader_that_raises_the_end_of_a_generator_is_named(journal: FolderJournal) -> None:
    def ends(*_: Any) -> Any:
        raise GeneratorExit

    with pytest.raises(ConnectorError, match=r"failed in poll_next: GeneratorExit"):
        attempt(journal, Half(shelf(), of_reader={"poll_next": ends}))


@pytest.mark.parametrize("name", ["split", "reader", "rows"])
def test_a_method_of_a_half_that_fails_is_named(journal: FolderJournal, name: str) -> None:
    with pytest.raises(ConnectorError) as caught:
        attempt(journal, Half(shelf(), of_half={name: fails}))

    assert str(caught.value).startswith(
        f"connector 'files' of balanced-source failed in {name}: KeyError: 'url'. {REPORT}"
    )
    assert isinstance(caught.value.__cause__, KeyError)
    assert attempt(journal, Half(shelf())) == 5, "nothing was sealed"


@pytest.mark.parametrize(
    "name",
    [
        "start",
        "add_splits",
        "notify_no_more_splits",
        "poll_next",
        "snapshot_state",
        "is_catching_up",
        "millis_behind",
        "close",
    ],
)
def test_a_method_of_a_reader_that_fails_is_named(journal: FolderJournal, name: str) -> None:
    with pytest.raises(ConnectorError) as caught:
        attempt(journal, Half(shelf(), of_reader={name: fails}))

    assert f"connector 'files' of balanced-source failed in {name}: KeyError: 'url'. {REPORT}" in (
        str(caught.value)
    )


@pytest.mark.parametrize(
    ("name", "answer", "expected"),
    [
        ("poll_next", None, "it returned a NoneType, and an InputStatus was expected"),
        ("snapshot_state", None, "it returned a NoneType, and a sequence of splits was expected"),
        ("snapshot_state", ["a"], "it has a str, and a SourceSplit was expected"),
        ("millis_behind", 3, "it returned a int, and a mapping was expected"),
    ],
)
def test_an_answer_of_another_type_is_named(
    journal: FolderJournal, name: str, answer: Any, expected: str
) -> None:
    with pytest.raises(ConnectorError, match=f"failed in {name}: TypeError: {expected}"):
        attempt(journal, Half(shelf(), of_reader={name: lambda *_: answer}))


@pytest.mark.parametrize("made", [None, ("shelf", "a")])
def test_a_half_that_makes_no_split_is_named(journal: FolderJournal, made: Any) -> None:
    expected = f"it returned a {type(made).__name__}, and a SourceSplit was expected"
    with pytest.raises(ConnectorError, match=f"failed in split: TypeError: {expected}"):
        attempt(journal, Half(shelf(), of_half={"split": lambda *_: made}))


def test_a_reader_that_is_none_is_named(journal: FolderJournal) -> None:
    with pytest.raises(ConnectorError, match="failed in reader: TypeError: it returned a NoneType"):
        attempt(journal, Half(shelf(), of_half={"reader": lambda *_: None}))


def test_a_broken_contract_names_the_connector(journal: FolderJournal) -> None:
    half = Half(shelf(), of_half={"rows": lambda _: [1]})

    with pytest.raises(
        ContractViolationError, match="connector 'files' of balanced-source breaks its contract"
    ):
        attempt(journal, half)


COLUMNS = StructType().add("n", LongType()).add("s", StringType())
RIGHT = pa.schema({"n": pa.int64(), "s": pa.string()})


def rows_of(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(1, f.type) for f in schema], schema=schema)


WRONG = [
    pytest.param({"n": pa.int64()}, "without column 's', which is declared as string", id="less"),
    pytest.param(
        {"n": pa.int64(), "s": pa.string(), "more": pa.int8()},
        "with column 'more', which is not declared",
        id="more",
    ),
    pytest.param(
        {"s": pa.string(), "n": pa.int64()},
        "with the columns s, n, and declared are n, s",
        id="another order",
    ),
    pytest.param(
        {"n": pa.int32(), "s": pa.string()},
        "in which column 'n' is int32, and declared is bigint: int64",
        id="another type",
    ),
    pytest.param(
        {"n": pa.int64(), "s": pa.null()},
        "in which column 's' is null, and declared is string: string",
        id="nothing but None",
    ),
]
DO = "Return rows that have the columns of schema, in the same order and with the same types"


@pytest.mark.parametrize(("columns", "said"), WRONG)
def test_rows_with_other_columns_are_named(columns: dict[str, Any], said: str) -> None:
    wrong = rows_of(pa.schema(columns))
    batches = checked_task("files", lambda: Ranges(first=wrong), COLUMNS).read(PART)

    with pytest.raises(ConnectorContractError) as caught:
        next(batches)

    assert str(caught.value) == (
        "connector 'files' of balanced-source breaks its contract: read of its task reader returned"
        f" rows {said}. {DO}"
    )


@pytest.mark.parametrize("own", ["n BIGINT, s STRING", COLUMNS])
def test_columns_that_the_query_leaves_out_are_no_mistake_of_the_connector(own: Any) -> None:
    some = StructType().add("n", LongType())
    columns = RowColumns(some, "rows", lambda: own)

    with pytest.raises(InvalidSpecError) as caught:
        columns.check(rows_of(RIGHT))

    assert str(caught.value) == (
        "schema: the query sets the columns n by .schema(...), and its connector returns n, s. Set"
        " these columns, or leave out .schema(...), and select columns afterwards"
    )


def test_rows_that_are_not_as_the_connector_declares_are_its_mistake() -> None:
    some = StructType().add("n", LongType())
    columns = RowColumns(some, "rows", lambda: "n BIGINT")
    with pytest.raises(ContractViolationError, match="with column 's', which is not declared"):
        columns.check(rows_of(RIGHT))


def test_a_query_with_a_journal_names_its_columns(journal: FolderJournal) -> None:
    with pytest.raises(InvalidSpecError, match=r"columns tape by .*returns tape, number"):
        attempt(journal, Half(shelf()), StructType().add("tape", StringType()))


def test_rows_with_the_declared_columns_are_passed_on() -> None:
    right = rows_of(RIGHT.with_metadata({"by": "a library"}))
    assert list(checked_task("files", lambda: Ranges(first=right), COLUMNS).read(PART)) == [right]
    assert list(checked_task("files", lambda: Ranges(first=ROWS)).read(PART)) == [ROWS]


def test_a_later_batch_is_checked_too() -> None:
    """Spark looks at the first one only."""

    class Changing:
        def read(self, partition: ReaderPartition) -> Iterator[Any]:
            yield rows_of(RIGHT)
            yield rows_of(pa.schema({"n": pa.int64(), "s": pa.null()}))

    batches = checked_task("files", Changing, COLUMNS).read(PART)
    next(batches)
    with pytest.raises(ConnectorContractError, match="in which column 's' is null"):
        next(batches)


TAPES = StructType().add("tape", StringType()).add("number", LongType())


@pytest.mark.parametrize("good", [0, 4])
def test_rows_that_spark_would_refuse_are_not_sealed(journal: FolderJournal, good: int) -> None:
    """A sealed range is read again for ever. Rows are made in batches of one, two and more."""

    def rows(records: Any) -> pa.RecordBatch:
        number = pa.int64() if max(n for _, n in records) < good else pa.int32()
        columns = {"tape": pa.string(), "number": number}
        values = [[r[0] for r in records], [r[1] for r in records]]
        return pa.RecordBatch.from_arrays(
            [pa.array(v, t) for v, t in zip(values, columns.values(), strict=True)],
            schema=pa.schema(columns),
        )

    with pytest.raises(ConnectorContractError) as caught:
        attempt(journal, Half(shelf(), of_half={"rows": rows}), TAPES)

    assert str(caught.value) == (
        "connector 'files' of balanced-source breaks its contract: rows of the connector's Spark"
        " half returned rows in which column 'number' is int32, and declared is bigint: int64."
        f" {DO}"
    )
    assert attempt(journal, Half(Shelf(lengths={"a": 7})), TAPES) == 7, "nothing was sealed"


def strict(value: Any, kind: pa.DataType) -> tuple[StructType, pa.RecordBatch]:
    """A column that is declared NOT NULL, or has parts that are."""
    name, declared = "c", from_arrow_type(kind)
    columns = StructType().add(name, declared, nullable=False)
    return columns, pa.RecordBatch.from_arrays(
        [pa.array([value, value], kind)], schema=pa.schema([pa.field(name, kind, nullable=False)])
    )


NUMBER = pa.field("number", pa.int64(), nullable=False)
LISTED = pa.list_(pa.field("element", pa.int64(), nullable=False))
MAPPED = pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))


@pytest.mark.parametrize(
    ("value", "kind", "name"),
    [
        (None, pa.int64(), "c"),
        ({"number": None}, pa.struct([NUMBER]), "c.number"),
        ([1, None], LISTED, "c.element"),
        ({"a": None}, MAPPED, "c.value"),
        (
            [{"number": None}],
            pa.list_(pa.field("element", pa.struct([NUMBER]))),
            "c.element.number",
        ),
    ],
)
@pytest.mark.parametrize("offset", [0, 1])
def test_a_value_that_is_missing_in_a_column_without_nulls_is_named(
    value: Any, kind: pa.DataType, name: str, offset: int
) -> None:
    columns, rows = strict(value, kind)
    batches = checked_task("files", lambda: Ranges(first=rows.slice(offset)), columns).read(PART)

    with pytest.raises(ConnectorContractError) as caught:
        next(batches)

    assert str(caught.value) == (
        "connector 'files' of balanced-source breaks its contract: read of its task reader returned"
        f" rows in which {name!r} is None, and schema declares it as NOT NULL. Return a value in"
        " each row, or declare it without NOT NULL"
    )


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, pa.int64()),
        ({"number": 1}, pa.struct([NUMBER])),
        ([], LISTED),
        ([1, 2], LISTED),
        ({"a": 1}, MAPPED),
        ([None], pa.list_(pa.field("element", pa.struct([NUMBER])))),
    ],
)
def test_rows_without_missing_values_are_passed_on(value: Any, kind: pa.DataType) -> None:
    """Parts of a value that may be None are not missing where the whole is None."""
    columns, rows = strict(value, kind)

    assert list(checked_task("files", lambda: Ranges(first=rows), columns).read(PART)) == [rows]


def test_what_is_missing_in_the_rest_of_a_batch_does_not_count() -> None:
    """Arrow keeps the values before and behind a slice, also those in lists and maps."""
    for kind, bad, good in ((LISTED, [None], [1]), (MAPPED, {"a": None}, {"a": 1})):
        columns, _ = strict(good, kind)
        rows = pa.RecordBatch.from_arrays(
            [pa.array([bad, good, bad], kind)],
            schema=pa.schema([pa.field("c", kind, nullable=False)]),
        ).slice(1, 1)

        assert list(checked_task("files", partial(Ranges, first=rows), columns).read(PART)) == [
            rows
        ]


def test_a_missing_value_is_not_sealed(journal: FolderJournal) -> None:
    """It would fail at every replay of the range."""
    columns = StructType().add("tape", StringType()).add("number", LongType(), nullable=False)
    fields = [pa.field("tape", pa.string()), pa.field("number", pa.int64(), nullable=False)]

    def rows(records: Any, missing: int | None = 3) -> pa.RecordBatch:
        values = [[r[0] for r in records], [None if r[1] == missing else r[1] for r in records]]
        return pa.RecordBatch.from_arrays(
            [pa.array(v, f.type) for v, f in zip(values, fields, strict=True)],
            schema=pa.schema(fields),
        )

    with pytest.raises(ConnectorContractError, match="in which 'number' is None"):
        attempt(journal, Half(shelf(), of_half={"rows": rows}), columns)

    good = Half(shelf(), of_half={"rows": lambda records: rows(records, None)})
    assert attempt(journal, good, columns) == 5, "nothing was sealed"


@pytest.mark.parametrize("other", ["n", "N"])
def test_two_columns_of_one_name_are_a_sentence(other: str) -> None:
    columns = StructType().add("n", LongType()).add(other, LongType())
    batches = checked_task("files", lambda: Ranges(first=ROWS), columns).read(PART)

    with pytest.raises(
        ConnectorContractError, match=f"two columns have the same name, 'n' and '{other}': rename"
    ):
        next(batches)


@pytest.mark.parametrize("made", [None, "reader"])
def test_a_factory_that_makes_no_task_reader_is_named(made: Any) -> None:
    expected = f"it returned a {type(made).__name__}, which has no method read"
    with pytest.raises(ConnectorError, match=f"that task_reader returned: TypeError: {expected}"):
        checked_task("files", lambda: made)


def test_a_task_reader_that_returns_no_batches_at_all_is_named() -> None:
    class Nothing:
        def read(self, partition: ReaderPartition) -> Any:
            return None

    with pytest.raises(ConnectorError, match="it returned a NoneType, and an iterator of pyarrow"):
        list(checked_task("files", Nothing).read(PART))
