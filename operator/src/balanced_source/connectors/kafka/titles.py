"""What messages call a cluster."""

from typing import Final

from balanced_source.names import first_of, separated

_SHOWN: Final = 5
"""Addresses that a message names."""


def titled(name: str, title: str = "") -> str:
    """Return what messages call a cluster: the title if there is one, else the user's name."""
    return title or f"cluster {name}"


def untitled(servers: str) -> str:
    """Return what messages call a cluster without a name from the user."""
    return f"the cluster{at_servers(servers)}"


def at_servers(servers: str) -> str:
    """Return the addresses of a cluster as a message has them; nothing if there are none."""
    addresses = separated(servers)
    return f" at {first_of(addresses, _SHOWN)}" if addresses else ""
