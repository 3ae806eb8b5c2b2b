"""A query that ends, started again with its state: it reads the files that are new since."""

from typing import Any
from unittest.mock import Mock

import pytest
from pyspark.sql.types import StructType

from balanced_source.connectors.files import File, FilesSource, Format, ListFiles, page_of
from balanced_source.connectors.pull import PullState
from balanced_source_spark.options import parse_options

FIRST, SECOND = File(10, "/in/0", 5), File(20, "/in/1", 5)


def restored(source: FilesSource) -> list[ListFiles]:
    """Return the listings that an enumerator asks for when everything was listed before."""
    cursor = page_of(source.list_page(1, None), [FIRST]).page.cursor
    context = Mock()
    context.current_assignments.return_value = {}
    context.registered_readers.return_value = {}
    state: Any = PullState(is_listed=True, cursor=cursor)
    source.restore_enumerator(context, state).start()
    return [asked.args[0] for asked in context.call_async.call_args_list]


def test_a_source_with_an_end_lists_once() -> None:
    assert restored(FilesSource(paths=("/in",), kind_of_file=Format.TEXT)) == []


def test_a_query_that_is_started_again_reads_what_is_new_since() -> None:
    source = FilesSource(paths=("/in",), kind_of_file=Format.TEXT, lists_again=True)

    (call,) = restored(source)

    assert [split.file for split in page_of(call, [FIRST, SECOND]).page.splits] == [SECOND]


@pytest.mark.parametrize("is_stream", [True, False])
def test_streaming_queries_list_again(*, is_stream: bool) -> None:
    given = {"connector": "files", "path": "/in", "stateDir": "/state"}
    found = parse_options(given, is_batch=not is_stream, schema=StructType()).embedded

    assert isinstance(found, FilesSource)
    assert found.lists_again is is_stream
