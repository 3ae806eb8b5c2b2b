"""What several files of this folder need: queries with a journal, and a control folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from balanced_source_spark.control import Control
from support.journal_query import JournalQuery, Make
from support.tapes import TapeHalf, shelf


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[JournalQuery] = []

    def query(half: TapeHalf | None = None, **options: object) -> JournalQuery:
        made.append(JournalQuery(tmp_path / "journal", half or TapeHalf(shelf()), **options))  # type: ignore[arg-type]
        return made[-1]

    yield query
    for one in made:
        one.close()


@pytest.fixture
def wanted() -> list[int]:
    return []


@pytest.fixture
def control(wanted: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Control:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return Control(wanted.append)
