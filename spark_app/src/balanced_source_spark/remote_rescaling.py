"""`rescale` under Spark Connect: the planner and its control folder are on the server's machine.

Spark Connect has no call that runs code beside the driver, except that the server asks a Python
data source for its schema there. So the request travels as options of a data source that has
nothing to read.
"""

from pathlib import Path
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from balanced_source_spark.control import request_parallelism
from balanced_source_spark.plain_errors import plain_errors

_FOLDER: Final = "folder"
_PARALLELISM: Final = "parallelism"


class RescaleRequest(DataSource):
    """Writes a number of readers into a control folder when Spark asks for its schema."""

    @classmethod
    def name(cls) -> str:
        return "balanced-rescale"

    @plain_errors()
    def schema(self) -> StructType | str:
        request_parallelism(Path(self.options[_FOLDER]), int(self.options[_PARALLELISM]))
        return "parallelism INT"


def request_on_server(query: Any, folder: Path, parallelism: int) -> str | None:
    """Ask the planner on the server for a number of readers.

    Args:
        query: of Spark Connect.
        folder: control folder of the query, on the server's machine.
        parallelism: number of readers.

    Returns:
        The error of the server, or None if it took the request.
    """
    session = query._session  # noqa: SLF001 - the active session can be one of another server
    session.dataSource.register(RescaleRequest)
    request = session.read.format(RescaleRequest.name()).options(
        **{_FOLDER: str(folder), _PARALLELISM: parallelism}
    )
    try:
        # analysed by the server, without a job that would wait for a free core
        _ = request.load().schema
    except PySparkException as error:
        return str(error)
    return None
