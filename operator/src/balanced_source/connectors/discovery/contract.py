"""What the discovering enumerator asks its source.

A connector answers, and knows nothing of the enumerator.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import ClassVar, Generic

from balanced_source import assigners
from balanced_source.api import RebalancePolicy, SplitId
from balanced_source.connectors.discovery.values import (
    Discover,
    Initialize,
    SplitT,
    rest_of,
    some_rests,
)


class SplitDiscovery(ABC, Generic[SplitT]):
    """Which splits there are, where reading of them starts, and who gets them."""

    assigner: assigners.SplitAssigner
    rebalance_policy: RebalancePolicy
    """When splits may move."""
    discovery_interval: float | None
    """Seconds between discoveries of a scope; None, or anything that is not positive, discovers
    once."""
    failure_threshold: int
    """Failures of a scope in a row until that is a problem to tell people of."""
    may_lose: bool
    """Whether records may be lost with a split that was deleted. If False, a split that was deleted
    before it was read to its stop stays, and a recreated one is not read, until someone decides."""
    losses_are_fatal: ClassVar[bool] = False
    """Whether a query without an operator ends when discovery finds lost records, and `may_lose` is
    false. False if its readers or its planner find them, and end it."""
    retention: float
    """Seconds for which positions of removed splits are kept."""

    @property
    def discovers_once(self) -> bool:
        """Whether no split is looked for after the first complete discovery."""
        return self.discovery_interval is None or self.discovery_interval <= 0

    @abstractmethod
    def scopes(self) -> tuple[str, ...]:
        """Parts of the source that are discovered independently."""

    def paused_scopes(self) -> frozenset[str]:
        """Scopes that the user does not want read now, and may want to read on later.

        While a position in one of them is kept before its stop, a source with an end is not
        finished.
        """
        return frozenset()

    @abstractmethod
    def scope_of(self, split_id: SplitId) -> str:
        """The scope that a split belongs to."""

    @abstractmethod
    def subscribes(self, split_id: SplitId) -> bool:
        """Whether the user still wants this split.

        False removes it without waiting for confirmation.
        """

    @abstractmethod
    def discover(self, scope: str, round_number: int) -> Discover:
        """The call that lists the splits of a scope."""

    @abstractmethod
    def initialize(
        self, scope: str, split_ids: Collection[SplitId], *, is_first: bool
    ) -> Initialize:
        """The call that resolves start (and stop) positions.

        `is_first` tells the first discovery of the scope, when the user's start option applies.
        """

    def unread(self, splits: Collection[SplitT], *, exists: bool) -> list[str]:
        """Return sentences that say what may be missing of splits that were deleted.

        The default names splits with a stop (`balanced_source.api.STOP`) that was not reached.

        Args:
            splits: at the positions that were reported last; readers may have read more.
            exists: whether there is something else under their ids now.
        """
        cut = [split for split in splits if rest_of(split) is not None]
        what = "deleted and created again" if exists else "deleted"
        text = f"{what} before being read to the end, as far as reports tell"
        return [f"{some_rests(cut)}: {text}"] if cut else []

    def begun_late(self, splits: Collection[SplitT]) -> list[str]:
        """Return sentences that name what lies before the start of splits read from it.

        Args:
            splits: found by a discovery after the first one of their scope.
        """
        return []

    def begun_elsewhere(self, splits: Collection[SplitT]) -> list[str]:
        """Return sentences that name what is lost before the start of splits.

        Args:
            splits: found by the first discovery of their scope, whose start is the user's.
        """
        return []

    def recreation_advice(self) -> str:
        """Return what a user does so that recreated splits are read.

        An imperative clause that names the setting. By default it names none: a source without
        such a setting has to be replaced.
        """
        return "make a new source (without an operator: use another checkpointLocation)"
