"""`rescale` under Spark Connect.

The request goes through the server, which has the planner's folder.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from balanced_source_spark import rescale
from balanced_source_spark.control import Control
from balanced_source_spark.remote_rescaling import RescaleRequest
from balanced_source_spark.rescaling import RescaleError

pytestmark = pytest.mark.unit


class Server:
    """Session, reader and request of a Spark Connect client, and the server that analyses it."""

    def __init__(self) -> None:
        self.dataSource = self.read = self
        self.sources: dict[str, type[RescaleRequest]] = {}

    def register(self, source: type[RescaleRequest]) -> None:
        self.sources[source.name()] = source

    def format(self, name: str) -> "Server":
        self.chosen = self.sources[name]
        return self

    def options(self, **options: object) -> "Server":
        self.given = {key: str(value) for key, value in options.items()}
        return self

    def load(self) -> "Server":
        return self

    @property
    def schema(self) -> object:
        try:
            return self.chosen(self.given).schema()
        except RescaleError as error:
            raise AnalysisException(str(error)) from error


class Query:
    """A query of Spark Connect; `rescale` knows it by its module."""

    id = "q"
    isActive = True  # noqa: N815 - the name that Spark gives it

    def __init__(self, folder: Path) -> None:
        self._session = Server()
        self.lastProgress = {
            "sources": [{"description": "", "latestOffset": json.dumps({"control": str(folder)})}]
        }


Query.__module__ = "pyspark.sql.connect.streaming.query"


def test_the_server_passes_the_number_of_readers_on_to_the_planner(
    control: Control, wanted: list[int]
) -> None:
    for parallelism in (5, 2):
        rescale(Query(control.folder), parallelism)
        control.look()

    assert wanted == [5, 2]


@pytest.mark.parametrize("name", ["other", "balanced-source-gone"])
def test_a_folder_that_belongs_to_no_query_of_the_server_is_refused(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "other").mkdir()

    with pytest.raises(
        RescaleError, match=f"the Spark Connect server cannot rescale query q: the folder .*{name}"
    ):
        rescale(Query(tmp_path / name), 3)

    assert list((tmp_path / "other").iterdir()) == []


def test_a_classic_query_is_rescaled_without_the_server(
    control: Control, wanted: list[int]
) -> None:
    class Classic(Query):
        _session: Any = None

    Classic.__module__ = "pyspark.sql.streaming.query"
    rescale(Classic(control.folder), 3)
    control.look()

    assert wanted == [3]
