"""The HTTP client. It uses the token that the source names and nothing of the process it runs in.

The operator serves sources of many owners, so the client takes no proxy, no password and no
certificate from its environment or its files, opens no other scheme than HTTP, and follows no
redirect.
"""

import json
import urllib.error
import urllib.request
from typing import Any, Final
from urllib.parse import quote

from balanced_source.api import SecretReader
from balanced_source.errors import RefusedDiscoveryError, TransientDiscoveryError
from balanced_source_httplog.source import SCOPE, Server

TIMEOUT: Final = 10.0
"""Seconds."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _opener() -> urllib.request.OpenerDirector:
    """Only what is listed here.

    `build_opener` would add proxies of the environment, and handlers for files.
    """
    made = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.UnknownHandler,
        _NoRedirect,
    ):
        made.add_handler(handler())
    return made


class LogClient:
    """Asks one server.

    Args:
        server: how it is reached.
        secrets: holds the token.
        client_id: sent as the name of the program.
    """

    def __init__(self, server: Server, secrets: SecretReader, *, client_id: str) -> None:
        self._server = server
        self._secrets = secrets
        self._client_id = client_id
        self._opener = _opener()

    def names(self) -> list[str]:
        """Return the names of the logs.

        Raises:
            DiscoveryError: the server does not answer, or refuses to.
        """
        return [str(name) for name in self._get("/logs")]

    def page(self, name: str, start: int) -> list[str]:
        """Return some entries of a log from `start` on; none if there is nothing new.

        Raises:
            DiscoveryError: the server does not answer, refuses to, or has not all of them.
        """
        found = self._get(f"/logs/{quote(name, safe='')}?from={start}")
        if found["first"] != start:
            raise RefusedDiscoveryError(
                f"log {name} begins at entry {found['first']} now: entries from {start} on were"
                " deleted before they were read. Restore them, or start the query anew",
                scope=SCOPE,
                reason="EntriesLost",
            )
        return [str(text) for text in found["entries"]]

    def _get(self, path: str) -> Any:
        # See `_opener`
        request = urllib.request.Request(self._server.url + path, headers=self._headers())  # noqa: S310
        try:
            with self._opener.open(request, timeout=TIMEOUT) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise RefusedDiscoveryError(
                f"{self._server.url} answers {error.code}: check url and token",
                scope=SCOPE,
                reason="Refused",
            ) from error
        except (OSError, ValueError) as error:
            raise TransientDiscoveryError(
                f"{self._server.url} does not answer: {error}", scope=SCOPE
            ) from error

    def _headers(self) -> dict[str, str]:
        headers = {"User-Agent": self._client_id}
        if (name := self._server.secret) is not None:
            try:
                token = self._secrets.read(name)["token"]
            except LookupError as error:
                raise RefusedDiscoveryError(
                    f"Secret {name} with key token is missing: create it",
                    scope=SCOPE,
                    reason="SecretMissing",
                ) from error
            headers["Authorization"] = f"Bearer {token}"
        return headers
