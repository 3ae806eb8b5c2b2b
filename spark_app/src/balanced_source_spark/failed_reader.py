"""A stream reader for a query whose own reader cannot be made.

Spark's planning process calls `streamReader`, and on an error stops the reader that it does not
have: users see an ``UnboundLocalError`` and not what is wrong. So the error waits for the first
question that Spark asks a reader.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from balanced_source.errors import BalancedSourceError
from balanced_source_spark.plain_errors import plain_errors


class FailedReader(DataSourceStreamReader):
    """Raises an error whatever it is asked.

    Args:
        error: why there is no other reader.
    """

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __reduce__(self) -> Any:
        # Errors with arguments of their own do not survive pickling.
        return _failed, (str(self._error),)

    @plain_errors()
    def _fail(self) -> NoReturn:
        raise self._error

    def initialOffset(self) -> dict[str, Any]:
        self._fail()

    def latestOffset(self, *_: Any) -> dict[str, Any]:
        self._fail()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._fail()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        self._fail()

    def stop(self) -> None:
        """Nothing was made."""


def _failed(text: str) -> FailedReader:
    return FailedReader(BalancedSourceError(text))
