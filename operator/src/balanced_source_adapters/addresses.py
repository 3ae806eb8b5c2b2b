"""Refuses addresses that an author of a source must not have the operator's pod ask.

A source names the servers that are asked for its splits, and the operator asks them on its behalf.
Clouds serve the credentials of a pod's own role at an address that only this pod reaches. Other
addresses are a matter of network policies: see the chart's `networkPolicy`.
"""

import ipaddress
import socket
from typing import Final
from urllib.parse import urlsplit

from balanced_source.errors import InvalidSpecError

_NAMES: Final = frozenset({"metadata", "metadata.google.internal", "instance-data"})
"""Names of such addresses."""

_OTHERS: Final = frozenset({ipaddress.ip_address("fd00:ec2::254")})
"""Addresses that are not link-local, and serve the same."""


def check_endpoint(url: str | None, *, field: str) -> None:
    """Check the URL of a server.

    Raises:
        InvalidSpecError: it is no URL, or its host is link-local, or serves credentials of a pod.
    """
    host = _host(url, field)
    if host in _NAMES or _is_refused(host):
        raise InvalidSpecError(
            f"must not name {host}: there clouds serve the credentials of the pod that asks. Name"
            " the server that the source reads from",
            field=field,
        )


def _host(url: str | None, field: str) -> str:
    # Clients take a URL without its scheme, too.
    text = url if url is None or "//" in url else f"//{url}"
    try:
        return (urlsplit(text).hostname or "").rstrip(".") if text else ""
    except ValueError as error:
        raise InvalidSpecError("must be the URL of a server", field=field) from error


def _is_refused(host: str) -> bool:
    address = _address(host)
    return address is not None and (address.is_link_local or address in _OTHERS)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a host is, if it is no name.

    In any form that the C library takes, such as one number in decimal or hexadecimal digits.
    """
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        pass
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
