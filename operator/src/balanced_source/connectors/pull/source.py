"""What a connector adds to become a complete source whose readers ask for splits."""

from typing import Any, Final, Generic

from balanced_source.api import Boundedness, Source, SplitEnumeratorContext
from balanced_source.connectors.pull.contract import SplitListing
from balanced_source.connectors.pull.enumerator import PullingSplitEnumerator
from balanced_source.connectors.pull.values import PullState, SplitT
from balanced_source.documents import columns
from balanced_source.documents.splits import decode_splits, encode_splits
from balanced_source.errors import IncompatibleVersionError

STATE_VERSION: Final = 1
"""Version of `PullState` as JSON."""


class PullSource(SplitListing[SplitT], Source[SplitT, PullState[SplitT]], Generic[SplitT]):
    """A source that ends. A connector adds its answers to `SplitListing`, and `create_split`."""

    @property
    def look_ahead(self) -> int:
        return 2

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    @property
    def state_version(self) -> int:
        return STATE_VERSION

    def encode_state(self, state: PullState[SplitT]) -> Any:
        return {
            "pending": encode_splits(state.pending),
            "returned": columns.encode_ids(state.returned),
            "finished": columns.encode_ids(state.finished),
            "isListed": state.is_listed,
            "isDoubtful": state.is_doubtful,
        }

    def decode_state(self, version: int, data: Any) -> PullState[SplitT]:
        if version > STATE_VERSION:
            raise IncompatibleVersionError(
                "state of the enumerator", found=version, supported=STATE_VERSION
            )
        return PullState(
            pending=decode_splits(data["pending"], self),
            returned=columns.decode_ids(data["returned"]),
            finished=columns.decode_ids(data["finished"]),
            is_listed=bool(data["isListed"]),
            is_doubtful=bool(data["isDoubtful"]),
        )

    def create_enumerator(
        self, context: SplitEnumeratorContext[SplitT]
    ) -> PullingSplitEnumerator[SplitT]:
        return PullingSplitEnumerator(context, self, PullState())

    def restore_enumerator(
        self, context: SplitEnumeratorContext[SplitT], state: PullState[SplitT]
    ) -> PullingSplitEnumerator[SplitT]:
        return PullingSplitEnumerator(context, self, state)
