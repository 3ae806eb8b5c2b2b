"""What a connector adds to the discovering enumerator to become a complete source."""

from typing import Any, Final, Generic

from balanced_source import assigners
from balanced_source.api import RebalanceMode, Source, SplitEnumeratorContext
from balanced_source.connectors.discovery.contract import SplitDiscovery
from balanced_source.connectors.discovery.enumerator import DiscoveringSplitEnumerator
from balanced_source.connectors.discovery.values import DiscoveryState, Retained, SplitT
from balanced_source.documents import columns
from balanced_source.documents.splits import decode_splits, encode_splits
from balanced_source.errors import IncompatibleVersionError

STATE_VERSION: Final = 3
"""Version of `DiscoveryState` as JSON; 2 added the assigner, 3 stores it by name instead of by its
class.

``removed`` is written only where there is something: an older release ignores it.
"""


class DiscoveringSource(
    SplitDiscovery[SplitT], Source[SplitT, DiscoveryState[SplitT]], Generic[SplitT]
):
    """What a connector adds to become a complete source.

    Its answers to `SplitDiscovery`, and `create_split`.
    """

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
            "retainedUntil": columns.encode_map(
                {s: entry.until for s, entry in state.retained.items()}
            ),
            "discovered": sorted(state.discovered),
            **({"removed": dict(sorted(state.removed.items()))} if state.removed else {}),
            "rebalanceDue": state.rebalance_due,
            "assigner": state.assigner.to_json() if state.assigner is not None else None,
        }

    def decode_state(self, version: int, data: Any) -> DiscoveryState[SplitT]:
        if version > STATE_VERSION:
            raise IncompatibleVersionError(
                "state of the enumerator", found=version, supported=STATE_VERSION
            )
        until = columns.decode_map(data["retainedUntil"])
        retained = decode_splits(data["retained"], self)
        return DiscoveryState(
            unassigned=decode_splits(data["unassigned"], self),
            preferred=columns.decode_map(data["preferred"]),
            finished=columns.decode_ids(data["finished"]),
            retained={
                s: Retained(split=split, until=float(until[s])) for s, split in retained.items()
            },
            discovered=frozenset(data["discovered"]),
            removed={str(scope): float(until) for scope, until in data.get("removed", {}).items()},
            rebalance_due=bool(data["rebalanceDue"]),
            assigner=_decoded_assigner(version, data),
        )

    def create_enumerator(
        self, context: SplitEnumeratorContext[SplitT]
    ) -> DiscoveringSplitEnumerator[SplitT]:
        return DiscoveringSplitEnumerator(context, self, DiscoveryState())

    def restore_enumerator(
        self, context: SplitEnumeratorContext[SplitT], state: DiscoveryState[SplitT]
    ) -> DiscoveringSplitEnumerator[SplitT]:
        return DiscoveringSplitEnumerator(context, self, state)


def _decoded_assigner(version: int, data: Any) -> assigners.AssignerIdentity | None:
    if version == 1 or not data["assigner"]:
        return None
    if version == 2:  # noqa: PLR2004 - numbers of versions are their names
        return assigners.former_identity(str(data["assigner"]))
    return assigners.AssignerIdentity.from_json(data["assigner"])
