"""What can go wrong between a driver and its documents."""

from collections.abc import Collection

from balanced_source.errors import BalancedSourceError


class ChannelError(BalancedSourceError):
    """The documents cannot be reached now. The query goes on; the channel tries again."""


def undiscovered(scopes: Collection[str], timeout: float) -> ChannelError:
    """Return the error of a query that ends by itself while not all of its source is known."""
    return ChannelError(
        f"{', '.join(sorted(scopes))} did not answer within {timeout:.0f} s. A query that ends by itself has to know "
        "all that there is to read: check the network and the brokers, and start the query again"
    )


def unassigned(timeout: float) -> ChannelError:
    """Return the error of a query that cannot wait any longer for its first assignment."""
    return ChannelError(f"no assignment was seen within {timeout:.0f} s: is the operator running?")
