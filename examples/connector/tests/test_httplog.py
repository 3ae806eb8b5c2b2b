"""The contract suites, on a server in this process: ``pytest tests``.

They need ``balanced-source[operator,spark,testing]`` and this project installed.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from balanced_source_httplog.client import LogClient
from balanced_source_httplog.connector import HttpLogConnector
from balanced_source_httplog.operator_half import HttpLogOperatorHalf, HttpLogSpec
from balanced_source_httplog.reader import HttpLogSplitReader
from balanced_source_httplog.source import HttpLogSource, LogSplit, Server
from balanced_source_httplog.spark_half import HttpLogSparkHalf

from balanced_source.api import AsyncCall, Caller, Json, RebalancePolicy, SplitId
from balanced_source.assigners import RoundRobinAssigner
from balanced_source.testing.enumerator import EnumeratorContract
from balanced_source.testing.readers_half import ReadersHalfContract, Row
from balanced_source.testing.serializer import SerializerContract, split_serializer
from balanced_source.testing.wake_up import WakeUpContract
from balanced_source_operator.contract.half import Common
from balanced_source_spark.contract.half import Query
from balanced_source_spark.contract.secrets import NO_SECRETS

LOGS = {"orders": [f"order {n}" for n in range(7)], "a/b c": ["x", "y", "z"], "empty": []}
PAGE = 4
"""Entries of one answer."""


class Handler(BaseHTTPRequestHandler):
    """The API, with logs that do not grow."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        _, *name = parts.path.strip("/").split("/", 1)
        body = json.dumps(page(unquote(name[0]), parts.query) if name else list(LOGS)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


def page(name: str, query: str) -> dict[str, Any]:
    """Return some entries of a log."""
    first = int(parse_qs(query)["from"][0])
    return {"first": first, "entries": LOGS[name][first : first + PAGE]}


@contextmanager
def served() -> Iterator[Server]:
    """Serve the API on a free port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Server(url=f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()


class OnServer:
    """Base of suites that need the server."""

    server: Server

    @pytest.fixture(autouse=True)
    def _served(self) -> Iterator[None]:
        with served() as server:
            type(self).server = server
            yield


class TestHttpLogHalf(OnServer, ReadersHalfContract):
    """What tasks do: the split reader, the emitter and the source reader are in it."""

    def half(self) -> HttpLogSparkHalf:
        return HttpLogSparkHalf()

    def query(self) -> Query[None]:
        return Query(client_id="test", read=None)

    def settings(self) -> Mapping[str, Any]:
        return HttpLogSource(server=self.server).reader_settings()

    def splits(self) -> Mapping[SplitId, Mapping[str, Json]]:
        return {("server", name): {} for name, entries in LOGS.items() if entries}

    def rows(self, split_id: SplitId) -> Sequence[Row]:
        name = str(split_id[1])
        return [{"log": name, "number": n, "text": text} for n, text in enumerate(LOGS[name])]


class TestHttpLogSplitReader(OnServer, WakeUpContract):
    """A log never ends, so `SplitReaderContract` as a whole is not for it."""

    def make_reader(self) -> HttpLogSplitReader:
        return HttpLogSplitReader(LogClient(self.server, NO_SECRETS, client_id="test"))

    def unread(self) -> LogSplit:
        return LogSplit(name="empty")


class TestHttpLogEnumerator(OnServer, EnumeratorContract):
    """Who gets which log."""

    def source(self) -> HttpLogSource:
        return HttpLogSource(server=self.server)

    def split_ids(self) -> frozenset[SplitId]:
        return frozenset(("server", name) for name in LOGS)

    def execute(self, call: AsyncCall) -> Any:
        connector = HttpLogConnector()
        return connector.executor(NO_SECRETS, caller=Caller.OWNER, client_id="test")(call)


class TestHttpLogSerializer(SerializerContract):
    """What documents hold of a split."""

    serializer = split_serializer(HttpLogSource(server=Server(url="http://logs.example.org")))
    values = (LogSplit(name="orders", number=3),)
    released = {1: {b'[["server","orders"],3,{}]': LogSplit(name="orders", number=3)}}


def test_a_config_becomes_a_source() -> None:
    common = Common(assigner=RoundRobinAssigner(), rebalance_policy=RebalancePolicy())
    spec = HttpLogSpec.model_validate(
        {"url": "http://logs.example.org/", "secret": "token", "discoveryInterval": "5s"}
    )

    source = HttpLogOperatorHalf().to_source(spec, common, {}, field="config")

    assert source.server == Server(url="http://logs.example.org", secret="token")  # noqa: S106
    assert source.discovery_interval == 5.0
