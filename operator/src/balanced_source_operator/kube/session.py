"""How the client of the API server speaks HTTP."""

import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from kubernetes_asyncio.client import ApiClient, Configuration

_READ_BUFFER: Final = 1 << 21
"""Bytes: a change of a watch may hold an object as large as the API server stores."""


@asynccontextmanager
async def open_client(configuration: Configuration) -> AsyncIterator[ApiClient]:
    """A client of the API server that looks for its proxy once, and for no password.

    The library's own session reads ``.netrc`` and the environment in a thread before each request.
    That took longer than many requests, and a ``.netrc`` with a default password made each of them
    fail: an account has either a token or a password.

    Args:
        configuration: server, credentials, and the proxy of the kubeconfig if it names one.
    """
    if configuration.proxy is None:
        configuration.proxy = proxy_of_environment(str(configuration.host))
    async with ApiClient(configuration) as client:
        rest = client.rest_client
        former = rest.pool_manager
        rest.pool_manager = aiohttp.ClientSession(
            connector=former.connector, read_bufsize=_READ_BUFFER
        )
        former.detach()
        yield client


def proxy_of_environment(server: str) -> str | None:
    """Return the proxy that the environment names for a server; None if there is none.

    Args:
        server: its URL. Hosts in ``NO_PROXY`` have no proxy.
    """
    parts = urlsplit(server)
    if not parts.hostname or urllib.request.proxy_bypass(parts.hostname):
        return None
    return urllib.request.getproxies().get(parts.scheme)
