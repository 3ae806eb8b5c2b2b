"""Parts whose splits are all assigned: a query that ends by itself reads each of them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from balanced_source.errors import InvalidSpecError
from balanced_source_adapters.registrations import registered
from balanced_source_spark import batch_reader
from balanced_source_spark.batch_reader import BalancedBatchReader
from balanced_source_spark.options import parse_options
from balanced_source_spark.stream_reader import task_reader
from support.lines_query import KIND, LinesQuery, registration


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setitem(registered()._by_kind, KIND, {"page": registration()})
    made = [tmp_path / name for name in ("first", "second")]
    for folder in made:
        folder.mkdir()
        (folder / "a.txt").write_text(f"{folder.name} 0\n{folder.name} 1\n")
    return made


def options(folders: list[Path], **more: str) -> dict[str, str]:
    parts = [{"connector": KIND, "folders": str(folder)} for folder in folders]
    return {"connector": "hybrid", "parts": json.dumps(parts), "startTimeoutSeconds": "12", **more}


ALL = ["first 0", "first 1", "second 0", "second 1"]


def test_a_batch_query_reads_all_parts(
    folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_reader, "check_tasks", lambda _: None)
    known = parse_options(options(folders), is_batch=True)

    def lines() -> Iterator[str]:
        for partition in BalancedBatchReader(known).partitions():
            for batch in task_reader(known)().read(partition):  # type: ignore[arg-type]
                yield from batch.column("line").to_pylist()

    assert sorted(lines()) == ALL


@pytest.fixture
def query(folders: list[Path]) -> Iterator[LinesQuery]:
    query = LinesQuery(folders[0])
    query.begin(**options(folders, stateDir=str(folders[0].parent / "state")))
    yield query
    query.planner.stop()


def test_available_now_reads_all_parts_in_turn(query: LinesQuery) -> None:
    query.run()

    assert query.lines == ALL


def test_what_is_too_little_for_a_micro_batch_does_not_wait(
    query: LinesQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that ends by itself gets no more, and would fail after a while."""
    asked: set[bool] = set()

    def admit(*arguments: Any, may_wait: bool) -> Any:
        asked.add(may_wait)
        return arguments[1]

    monkeypatch.setattr(query.planner, "_hooks", _Admitting(query.planner._hooks, admit))

    query.run()

    assert query.lines == ALL
    assert asked == {False}


class _Admitting:
    """The hooks of a query, but for `admit`."""

    def __init__(self, hooks: Any, admit: Any) -> None:
        self._hooks, self.admit = hooks, admit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hooks, name)


def test_once_is_refused(query: LinesQuery) -> None:
    """One micro-batch could read the first part at most."""
    limit: Any = batch_reader.ReadAllAvailable()

    with pytest.raises(InvalidSpecError, match="trigger Once would read only a part"):
        query.planner.latestOffset(query.planner.initialOffset(), limit)
