"""What a connector adds to the discovering enumerator to become a complete source."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final, Generic

from balanced_source import assigners
from balanced_source.api import RebalanceMode, RebalancePolicy, Source, SplitEnumeratorContext, SplitId
from balanced_source.connectors.discovery.values import (
    Discover,
    DiscoveryState,
    Initialize,
    Retained,
    SplitT,
)
from balanced_source.documents import columns
from balanced_source.documents.splits import decode_splits, encode_splits
from balanced_source.errors import IncompatibleVersionError

if TYPE_CHECKING:
    from balanced_source.connectors.discovery.enumerator import DiscoveringSplitEnumerator

STATE_VERSION: Final = 3
"""Version of `DiscoveryState` as JSON; 2 added the assigner, 3 stores it by name instead of by its class."""


class DiscoveringSource(Source[SplitT, DiscoveryState[SplitT]], Generic[SplitT]):
    """What a connector adds to become a complete source."""

    assigner: assigners.SplitAssigner
    rebalance_policy: RebalancePolicy
    """When splits may move."""
    discovery_interval: float | None
    """Seconds between discoveries of a scope; None, or anything that is not positive, discovers once."""
    failure_threshold: int
    """Failures of a scope in a row until that is a problem to tell people of."""
    may_lose: bool
    """Whether a split may be read anew as what it is now if it was deleted and created again; else somebody decides."""
    retention: float
    """Seconds for which positions of removed splits are kept."""

    @property
    def discovers_once(self) -> bool:
        """Whether no split is looked for after the first complete discovery."""
        return self.discovery_interval is None or self.discovery_interval <= 0

    @abstractmethod
    def scopes(self) -> tuple[str, ...]:
        """Parts of the source that are discovered independently."""

    @abstractmethod
    def scope_of(self, split_id: SplitId) -> str:
        """The scope that a split belongs to."""

    @abstractmethod
    def subscribes(self, split_id: SplitId) -> bool:
        """Whether the user still wants this split; False removes it without waiting for confirmation."""

    @abstractmethod
    def discover(self, scope: str, round_number: int) -> Discover:
        """The call that lists the splits of a scope."""

    @abstractmethod
    def initialize(self, scope: str, split_ids: Collection[SplitId], *, is_first: bool) -> Initialize:
        """The call that resolves start (and stop) positions.

        `is_first` tells the first discovery of the scope, when the user's start option applies.
        """

    def unread(self, splits: Collection[SplitT], *, exists: bool) -> list[str]:
        """Return sentences that say what may be missing of splits that were deleted.

        Args:
            splits: at the positions that were reported last.
            exists: whether there is something else under their ids now.
        """
        return []

    @property
    def wants_loads(self) -> bool:
        return self.assigner.uses_weights or self.rebalance_policy.mode is RebalanceMode.DRIFT

    @property
    def state_version(self) -> int:
        return STATE_VERSION

    def encode_state(self, state: DiscoveryState[SplitT]) -> Any:
        return {
            "unassigned": encode_splits(state.unassigned),
            "preferred": columns.encode_map(state.preferred),
            "finished": columns.encode_ids(state.finished),
            "retained": encode_splits({s: entry.split for s, entry in state.retained.items()}),
            "retainedUntil": columns.encode_map({s: entry.until for s, entry in state.retained.items()}),
            "discovered": sorted(state.discovered),
            "rebalanceDue": state.rebalance_due,
            "assigner": state.assigner.to_json() if state.assigner is not None else None,
        }

    def decode_state(self, version: int, data: Any) -> DiscoveryState[SplitT]:
        if version > STATE_VERSION:
            raise IncompatibleVersionError("state of the enumerator", found=version, supported=STATE_VERSION)
        until = columns.decode_map(data["retainedUntil"])
        retained = decode_splits(data["retained"], self)
        return DiscoveryState(
            unassigned=decode_splits(data["unassigned"], self),
            preferred=columns.decode_map(data["preferred"]),
            finished=columns.decode_ids(data["finished"]),
            retained={s: Retained(split=split, until=float(until[s])) for s, split in retained.items()},
            discovered=frozenset(data["discovered"]),
            rebalance_due=bool(data["rebalanceDue"]),
            assigner=_decoded_assigner(version, data),
        )

    def create_enumerator(self, context: SplitEnumeratorContext[SplitT]) -> DiscoveringSplitEnumerator[SplitT]:
        from balanced_source.connectors.discovery.enumerator import DiscoveringSplitEnumerator

        return DiscoveringSplitEnumerator(context, self, DiscoveryState())

    def restore_enumerator(
        self, context: SplitEnumeratorContext[SplitT], state: DiscoveryState[SplitT]
    ) -> DiscoveringSplitEnumerator[SplitT]:
        from balanced_source.connectors.discovery.enumerator import DiscoveringSplitEnumerator

        return DiscoveringSplitEnumerator(context, self, state)


def _decoded_assigner(version: int, data: Any) -> assigners.AssignerIdentity | None:
    if version == 1 or not data["assigner"]:
        return None
    if version == 2:  # noqa: PLR2004 - numbers of versions are their names
        return assigners.former_identity(str(data["assigner"]))
    return assigners.AssignerIdentity.from_json(data["assigner"])
