"""The Spark half. Every Python process of a query imports this module: the client is imported where it is used."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa

from balanced_source.api import SplitId
from balanced_source.host.ends import Mark, SplitEnd
from balanced_source_httplog.source import KIND, SCOPE, HttpLogSource, Server
from balanced_source_spark.contract.half import Choices, Query, SparkHalf
from balanced_source_spark.contract.hooks import PlannerContext, PlannerHooks
from balanced_source_spark.contract.option_table import Option, rejected
from balanced_source_spark.partition import ReaderPartition

PAGE: Final = 1000
"""Entries of one answer."""

SCHEMA: Final = pa.schema([("log", pa.string()), ("number", pa.int64()), ("text", pa.string())])


OPTIONS: Final = (
    Option(name="url", meaning="Address of the API.", is_embedded=True),
    Option(name="secret", meaning="Name of the Secret with the token.", is_embedded=True),
)


class HttpLogSparkHalf(SparkHalf[None]):
    """Logs behind an HTTP API."""

    def options(self) -> tuple[Option, ...]:
        return OPTIONS

    def read_options(self, options: Mapping[str, str]) -> None:
        return None

    def schema(self, read: None) -> str:
        return "log STRING, number BIGINT, text STRING"

    def source(self, options: Mapping[str, str], choices: Choices) -> HttpLogSource:
        if "url" not in options:
            raise rejected("url", "is missing: set the address of the API")
        server = Server(url=options["url"].rstrip("/"), secret=options.get("secret"))
        return HttpLogSource(server=server, assigner=choices.assigner)

    def task_reader(self, query: Query[None]) -> "Callable[[], HttpLogTaskReader]":
        return partial(HttpLogTaskReader, query)

    def hooks(self, context: PlannerContext[None]) -> "HttpLogHooks":
        return HttpLogHooks(context)


@dataclass(frozen=True, slots=True)
class HttpLogTaskReader:
    """Reads one reader's share of a micro-batch."""

    query: Query[None]

    def read(self, partition: ReaderPartition) -> Iterator[pa.RecordBatch]:
        """Return the entries of the partition's ranges."""
        from balanced_source_httplog.client import LogClient

        if not partition.ranges:
            return
        server = Server.from_json(partition.settings[KIND])
        client = LogClient(server, self.query.secrets, client_id=self.query.client_id)
        for piece in partition.ranges:
            name, end = str(piece.split_id[1]), int(piece.end or 0)
            for start in range(int(piece.start or 0), end, PAGE):
                yield _rows(name, start, client.entries(name, start, min(end, start + PAGE)))


def _rows(name: str, start: int, entries: list[str]) -> pa.RecordBatch:
    numbers = range(start, start + len(entries))
    return pa.RecordBatch.from_arrays([[name] * len(entries), list(numbers), entries], schema=SCHEMA)


class HttpLogHooks(PlannerHooks):
    """Planning asks for nothing but the ends."""

    def __init__(self, context: PlannerContext[None]) -> None:
        self._context = context

    def ends(
        self, scope: str, split_ids: Collection[SplitId], marks: Mapping[SplitId, Mark]
    ) -> Mapping[SplitId, SplitEnd]:
        from balanced_source_httplog.client import LogClient

        query, settings = self._context.query, self._context.known_settings()
        client = LogClient(Server.from_json(settings[KIND]), query.secrets, client_id=query.client_id)
        counts: Mapping[str, Any] = client.counts()
        return {s: SplitEnd(end=counts[name]) for s in split_ids if (name := str(s[1])) in counts and s[0] == SCOPE}
