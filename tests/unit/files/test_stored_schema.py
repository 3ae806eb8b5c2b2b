"""``inferSchema``: columns are inferred once, stored with the enumerator state, and enforced."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from balanced_source.connectors.files import File, FilesSource, Format, ListFiles, page_of
from balanced_source.connectors.pull import Page
from balanced_source.errors import BalancedSourceError, InvalidSpecError
from balanced_source_adapters.files.connector import FilesCodec, Lister
from balanced_source_adapters.files.stored_schema import stored_ddl
from balanced_source_adapters.folder import FolderStore, state_path
from balanced_source_spark.channels.embedded import EmbeddedChannel
from balanced_source_spark.contract.half import Query, half_of
from balanced_source_spark.contract.secrets import QuerySecrets
from balanced_source_spark.options import parse_options
from testbed.waiting import wait_until

COLUMNS = "id BIGINT, name STRING"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    (made / "0.json").write_text('{"id": 1, "name": "one"}\n')
    return made


def given(folder: Path, **more: str) -> dict[str, str]:
    return {
        "connector": "files",
        "path": str(folder),
        "fileFormat": "json",
        "inferSchema": "true",
        "stateDir": str(folder.parent / "state"),
        "discoveryInterval": "1h",
        **more,
    }


def call(schema: str, cursor: Any = None) -> ListFiles:
    source = FilesSource(
        paths=("/in",), kind_of_file=Format.JSON, discovery_interval=1, schema=schema
    )
    return source.list_page(1, cursor)


def test_the_columns_come_from_the_files(folder: Path) -> None:
    options = parse_options(given(folder))

    assert options.read.ddl == COLUMNS
    assert isinstance(options.embedded, FilesSource)
    assert options.embedded.schema == COLUMNS


def test_the_cursor_keeps_the_columns_and_refuses_others() -> None:
    page = page_of(call(COLUMNS), [File(1, "/in/0", 10)]).page
    again = page_of(call(COLUMNS, page.cursor), [File(2, "/in/1", 10)]).page
    other = page_of(call("id STRING", page.cursor), [File(2, "/in/1", 10)]).page

    assert (page.refusal, again.refusal) == ("", "")
    assert len(again.splits) == 1
    assert other == Page(cursor=page.cursor, refusal=other.refusal)
    assert "id STRING" in other.refusal
    assert COLUMNS in other.refusal


def test_a_source_with_given_columns_stores_none() -> None:
    cursor = page_of(call(""), [File(1, "/in/0", 10)]).page.cursor

    assert "schema" not in cursor
    assert "schema" not in FilesCodec().call_to_json(call(""))
    assert FilesCodec().call_from_json(FilesCodec().call_to_json(call("id INT"))) == call("id INT")


def test_a_restart_takes_the_stored_columns_whatever_the_files_have(folder: Path) -> None:
    state = folder.parent / "state"
    store(parse_options(given(folder)))
    assert stored_ddl(state) == COLUMNS
    (folder / "1.json").write_text('{"id": "two", "name": "two", "more": true}\n')

    options = parse_options(given(folder))

    assert options.read.ddl == COLUMNS


def store(options: Any) -> None:
    """Let the enumerator of a query list the files once."""
    channel = EmbeddedChannel(
        options.embedded,
        Lister(QuerySecrets()),
        parallelism=1,
        state=FolderStore(state_path(options.state_dir)),
    )
    channel.start(lambda _: None)
    try:
        wait_until(lambda: bool(stored_ddl(options.state_dir)), 30, "the state to be stored")
    finally:
        channel.close()


def test_a_damaged_state_is_said(folder: Path) -> None:
    state = folder.parent / "state"
    state.mkdir()
    (state / "enumerator.json").write_text(json.dumps({"kind": "EnumeratorState"}))

    with pytest.raises(BalancedSourceError, match="EnumeratorState"):
        parse_options(given(folder))


def test_columns_are_chosen_among_the_inferred_ones(folder: Path) -> None:
    options = parse_options(given(folder, columns="name", metadataColumns="false"))

    assert half_of("files").schema(options.read) == "name STRING"


def test_tasks_refuse_columns_that_were_inferred_again_meanwhile(folder: Path) -> None:
    read = parse_options(given(folder, metadataColumns="false")).read
    fitting = StructType([StructField("id", LongType()), StructField("name", StringType())])
    half: Any = half_of("files")

    half.task_reader(Query(client_id="test", read=read, schema=fitting))
    with pytest.raises(InvalidSpecError, match="start the query again"):
        half.task_reader(Query(client_id="test", read=read, schema=StructType(fitting[:1])))


def test_what_does_not_go_together(folder: Path) -> None:
    known = given(folder)
    for wrong, why in (
        ({**known, "schema": COLUMNS}, "either schema"),
        ({**known, "fileFormat": "text"}, "one column"),
        (
            {k: v for k, v in known.items() if k not in ("stateDir", "discoveryInterval")},
            "stateDir",
        ),
    ):
        schema = StructType([StructField("id", LongType())])
        with pytest.raises(InvalidSpecError, match=why):
            parse_options(wrong, schema=schema)


def test_a_part_of_a_hybrid_source_says_its_columns(folder: Path) -> None:
    part = {k: v for k, v in given(folder).items() if k not in ("stateDir", "discoveryInterval")}
    parts = json.dumps([part, {"connector": "kafka", "kafka.bootstrap.servers": "b:1"}])

    with pytest.raises(InvalidSpecError, match="part of a hybrid source"):
        parse_options(
            {"connector": "hybrid", "parts": parts, "stateDir": str(folder.parent / "state")}
        )
