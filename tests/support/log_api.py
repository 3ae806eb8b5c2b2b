"""The API that the sample connector reads: logs that grow, behind HTTP."""

import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit

Entry = tuple[str, int, str]
"""Log, number, text."""

PAGE = 100
"""Entries of one answer."""


class LogApi:
    """Serves logs on a free port of the loopback interface until it is left.

    Attributes:
        logs: name → entries.
        tokens: what was sent as authorization, and how often.
        is_broken: whether a page is an answer that the connector does not expect.
    """

    def __init__(self) -> None:
        self.logs: dict[str, list[str]] = {}
        self.tokens: Counter[str] = Counter()
        self.is_broken = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def entries(self) -> Counter[Entry]:
        """Each entry once."""
        return Counter(
            (name, n, text) for name, texts in self.logs.items() for n, text in enumerate(texts)
        )

    def append(self, name: str, count: int) -> None:
        """Let a log grow; it is made if it is new."""
        log = self.logs.setdefault(name, [])
        log.extend(f"{name}-{number}" for number in range(len(log), len(log) + count))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, path: str) -> object:
        parts = urlsplit(path)
        names = parts.path.strip("/").split("/")
        if names == ["logs"]:
            return list(self.logs)
        if self.is_broken:
            return {}
        begin = int(parse_qs(parts.query)["from"][0])
        return {"first": begin, "entries": self.logs[unquote(names[1])][begin : begin + PAGE]}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                api.tokens[self.headers.get("Authorization", "")] += 1
                body = json.dumps(api._answer(self.path)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing is logged."""

        return Handler
