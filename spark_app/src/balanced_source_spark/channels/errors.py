"""What can go wrong between a driver and its documents."""

from balanced_source.errors import BalancedSourceError


class ChannelError(BalancedSourceError):
    """The documents cannot be reached now. The query continues; the channel tries again."""


class NothingAssignedError(ChannelError):
    """No assignment comes until someone acts."""
