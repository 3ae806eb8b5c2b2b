"""Borders of lines and of options: the first byte, the last one, and one alone."""

import io
import itertools
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructType

from balanced_source.assigners import RoundRobinAssigner
from balanced_source.connectors.files import FilesSource, Format
from balanced_source.errors import InvalidSpecError
from balanced_source.host import SplitRange
from balanced_source_spark.contract.ddl import check_ddl
from balanced_source_spark.contract.half import Choices
from balanced_source_spark.contract.secrets import WHOLE_FOLDER, QuerySecrets
from balanced_source_spark.files import columnar
from balanced_source_spark.files.inferring import check_inferring
from balanced_source_spark.files.lines import behind_header, chunks
from balanced_source_spark.files.malformed import quotes_remover
from balanced_source_spark.files.options import file_read_options
from balanced_source_spark.files.parsing import _middle
from balanced_source_spark.files.task_reader import FilesTaskReader
from balanced_source_spark.hybrid.schema import _read
from balanced_source_spark.partition import ReaderPartition
from unit.files.test_task_reader import piece


def test_lines_are_halved_where_a_line_begins_unless_there_is_one() -> None:
    for size in range(1, 8):
        for data in map(bytes, itertools.product(b"a\n", repeat=size)):
            begins: list[int | None] = [
                at + 1 for at, byte in enumerate(data[:-1]) if byte == ord("\n")
            ]

            assert _middle(data) in (begins or [None]), data


@pytest.mark.parametrize(
    ("data", "found"),
    [(b"a\n1\n", b"1\n"), (b"a", b""), (b"\na\n1\n", b"1\n"), (b" \na\n1", b"1")],
)
def test_a_header_of_one_character_is_a_header(data: bytes, found: bytes) -> None:
    assert behind_header(data) == (found, False)


class ShortReads(io.BytesIO):
    """Its first answer is shorter than what was asked for, as of a store."""

    is_short = True

    def read_at(self, size: int, at: int) -> bytes:
        size, self.is_short = (2 if self.is_short else size), False
        return self.getvalue()[at : at + size]


def test_an_answer_that_is_shorter_than_asked_is_not_the_end_of_a_file() -> None:
    data = b"abcdef\n12\n"
    file: Any = ShortReads(data)

    assert b"".join(chunks(file, 0, len(data), len(data), chunk=8)) == data


FLOATS = pa.schema([("a", pa.float64()), ("b", pa.struct([("c", pa.float32())]))])


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b'{"a": "NaN"}', b'{"a": NaN}'),
        (b'{"a": "-Infinity"}', b'{"a": -Infinity}'),
        (b'{"a" :\t"Infinity", "c": "NaN"}', b'{"a" :\tInfinity, "c": NaN}'),
        (b'{"x": "NaN", "a": 1}', b'{"x": "NaN", "a": 1}'),
    ],
)
def test_only_numbers_that_are_not_finite_lose_their_quotes(line: bytes, found: bytes) -> None:
    assert quotes_remover(FLOATS)(line) == found
    assert quotes_remover(pa.schema([("a", pa.string())]))(line) == line


@pytest.mark.parametrize(
    ("dictionary", "begin"),
    [((True, 40), 40), ((True, 0), 100), ((True, None), 100), ((False, 40), 100)],
)
def test_a_column_begins_with_its_dictionary_if_it_has_one(
    dictionary: tuple[bool, int | None], begin: int
) -> None:
    has_one, offset = dictionary
    column = SimpleNamespace(
        has_dictionary_page=has_one, dictionary_page_offset=offset, data_page_offset=100
    )

    assert columnar._begin(column) == begin


@pytest.mark.parametrize(
    ("options", "how", "error"),
    [
        ({}, {"is_stream": True}, "needs the option stateDir"),
        ({"statedir": "/s"}, {"is_stream": True}, None),
        ({}, {}, None),
        ({"statedir": "/s"}, {"is_part": True}, "cannot be set for a part"),
    ],
    ids=["a stream", "with its state", "a batch", "a part"],
)
def test_columns_are_inferred_where_they_can_stay_as_they_are(
    options: dict[str, str], how: dict[str, bool], error: str | None
) -> None:
    choices = Choices(assigner=RoundRobinAssigner(), **how)
    if error is None:
        check_inferring(options, choices)
    else:
        with pytest.raises(InvalidSpecError, match=error):
            check_inferring(options, choices)


def test_columns_whose_names_differ_in_case_alone_are_refused() -> None:
    check_ddl("a INT, b STRUCT<a: INT>")

    with pytest.raises(ValueError, match="A"):
        check_ddl("a INT, A STRING")


@pytest.mark.parametrize("text", ["array < int", "struct < a : int", "map < int , int"])
def test_a_type_whose_bracket_is_not_closed_ends_with_its_last_word(text: str) -> None:
    assert _read(deque(text.split())).endswith("int>")


def test_types_in_brackets_end_where_their_bracket_does() -> None:
    text = "map < struct < a : int > , array < struct < b : int , c : string > > >"

    assert _read(deque(text.split())) == text.replace(" ", "")


def test_hidden_files_of_a_folder_of_secrets_are_no_properties(tmp_path: Path) -> None:
    """Kubernetes keeps the files themselves in hidden folders."""
    for name in ("user", ".hidden", "..data/user", "cluster/password"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)

    found = QuerySecrets(folder=tmp_path).read(WHOLE_FOLDER)

    assert set(found.values()) == {"user", "cluster/password"}


def test_each_range_of_a_file_looks_at_the_whole_header(tmp_path: Path) -> None:
    """Without its first byte, the first column would have the name of the second one."""
    path = tmp_path / "a.csv"
    path.write_text("ab,b\n1,a\n2,b\n3,c\n")
    ddl = "ab BIGINT, b STRING"
    options = file_read_options({"fileformat": "csv", "header": "true", "schema": ddl})
    source = FilesSource(paths=("/",), kind_of_file=Format.CSV, schema=ddl)
    schema = StructType().add("ab", LongType()).add("b", StringType())

    def read(*ranges: SplitRange) -> list[Any]:
        part = ReaderPartition(
            subtask_id=0, ranges=ranges, settings=source.reader_settings(), samples=None
        )
        reader = FilesTaskReader(options, schema, QuerySecrets())
        return [row["ab"] for batch in reader.read(part) for row in batch.to_pylist()]

    assert read(piece(path, 0, 7)) + read(piece(path, 7)) == [1, 2, 3]
