"""What the enumerator asks its source: a connector answers, and knows nothing of the enumerator."""

from abc import ABC, abstractmethod
from typing import Generic

from balanced_source.connectors.pull.values import ListSplits, SplitT


class SplitListing(ABC, Generic[SplitT]):
    """Which splits there are, and who should get them."""

    failure_threshold: int = 3
    """Failed listings in a row after which people are told."""
    may_repeat: bool = False
    """Whether reading continues after the state was lost, although splits that were read may be
    read again."""
    has_locations: bool = False
    """Whether `is_near` or `is_in_zone` tells anything; asking them for each pending split takes
    time."""

    @abstractmethod
    def list_splits(self, round_number: int) -> ListSplits:
        """Return the call that lists all splits."""

    def priority(self, split: SplitT) -> int:
        """Return which splits go first: those with the larger number, such as the larger ones."""
        del split
        return 0

    def is_near(self, split: SplitT, host: str) -> bool:
        """Return whether a split should go to readers on this host before all others."""
        del split, host
        return False

    def is_in_zone(self, split: SplitT, zone: str) -> bool:
        """Return whether a split should go to readers of this zone before those elsewhere.

        Hosts that are near go first. Only asked for readers whose zone is known, see
        `SplitEnumeratorContext.zone_of`.
        """
        del split, zone
        return False

    def repeat_advice(self) -> str:
        """Return what a user does so that reading continues.

        An imperative clause that names the setting.
        """
        return "allow the source to repeat records"
