"""The Spark half.

Every Python process of a query imports this module: the client is imported where it is used.

The API does not tell how many entries a log has, so tasks get readers, and a journal keeps where
each has stopped.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from balanced_source.api import Json, Position, SourceReader, SourceReaderContext, SplitId
from balanced_source_httplog.source import KIND, Entry, HttpLogSource, LogSplit, Server
from balanced_source_spark.contract.half import Choices, Query
from balanced_source_spark.contract.option_table import Option
from balanced_source_spark.contract.readers import ReadersHalf

if TYPE_CHECKING:
    import pyarrow as pa


OPTIONS: Final = (
    Option(name="url", meaning="Address of the API.", is_embedded=True, is_required=True),
    Option(name="secret", meaning="Name of the Secret with the token.", is_embedded=True),
)


class HttpLogSparkHalf(ReadersHalf[None, Entry, LogSplit]):
    """Logs behind an HTTP API."""

    reference = "the README of balanced-source-httplog"

    def options(self) -> tuple[Option, ...]:
        return OPTIONS

    def read_options(self, options: Mapping[str, str]) -> None:
        return None

    def schema(self, read: None) -> str:
        return "log STRING, number BIGINT, text STRING"

    def source(self, options: Mapping[str, str], choices: Choices) -> HttpLogSource:
        server = Server(url=options["url"].rstrip("/"), secret=options.get("secret"))
        return HttpLogSource(server=server, assigner=choices.assigner)

    def split(
        self, split_id: SplitId, position: Position, attributes: Mapping[str, Json]
    ) -> LogSplit:
        return LogSplit(name=str(split_id[1]), number=int(position or 0))

    def reader(
        self, query: Query[None], settings: Mapping[str, Any], context: SourceReaderContext
    ) -> SourceReader[Entry, LogSplit]:
        from balanced_source_httplog.client import LogClient
        from balanced_source_httplog.reader import HttpLogReader

        server = Server.from_json(settings[KIND])
        return HttpLogReader(context, LogClient(server, query.secrets, client_id=query.client_id))

    def rows(self, records: Sequence[Entry]) -> "pa.RecordBatch":
        import pyarrow as pa

        schema = pa.schema([("log", pa.string()), ("number", pa.int64()), ("text", pa.string())])
        columns = zip(*((entry.log, entry.number, entry.text) for entry in records), strict=True)
        return pa.RecordBatch.from_arrays([list(column) for column in columns], schema=schema)
