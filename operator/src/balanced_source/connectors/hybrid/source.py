"""The hybrid source: its parts, and what can be combined."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from balanced_source.api import (
    ANY_SCOPE,
    Boundedness,
    Json,
    Measure,
    Position,
    Source,
    SplitEnumeratorContext,
    SplitId,
    SupportsSplitReassignmentOnRecovery,
    SupportsSwitchFrom,
    SupportsSwitchTo,
    SwitchPosition,
)
from balanced_source.connectors.hybrid.enumerator import HybridSplitEnumerator
from balanced_source.connectors.hybrid.looks import Looks
from balanced_source.connectors.hybrid.settings import KIND, HybridReaderSettings
from balanced_source.connectors.hybrid.state import HybridState
from balanced_source.connectors.hybrid.values import HybridPart, HybridSplit, names_of
from balanced_source.documents.columns import decode_ids, encode_ids
from balanced_source.documents.splits import decode_splits, encode_splits
from balanced_source.errors import (
    ContractViolationError,
    IncompatibleVersionError,
    InvalidSpecError,
    StateError,
)
from balanced_source.names import shown

STATE_VERSION: Final = 1
"""Version of `HybridState` as JSON."""

_FIXED: Final = (
    "the kinds and the order of parts cannot be changed. Restore the former parts, or create a new"
    " source"
)

FEWEST: Final = 2
"""Parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridSource(Source[HybridSplit, HybridState], SupportsSplitReassignmentOnRecovery):
    """Parts that are read in turn. A value; `checked_hybrid` makes one.

    Attributes:
        parts: at least two; all but the last are bounded.
    """

    parts: tuple[HybridPart, ...]

    @property
    def kind(self) -> str:
        return KIND

    @property
    def boundedness(self) -> Boundedness:
        return self.parts[-1].source.boundedness

    @property
    def look_ahead(self) -> int:
        # The assignment has one number for the whole source, whichever part is read. With none, a
        # query that ends by itself would end with the splits that were there at its start: those
        # of the first part.
        return max(1, *(part.source.look_ahead for part in self.parts))

    @property
    def has_event_times(self) -> bool:
        """Splits of all parts wait for each other."""
        return all(part.source.has_event_times for part in self.parts)

    @property
    def has_ending_splits(self) -> bool:
        return True

    @property
    def wants_loads(self) -> bool:
        return any(part.source.wants_loads for part in self.parts)

    def deals_anew(self, split_id: SplitId) -> bool:
        """Each part has its own rule."""
        return self.parts[self.index_of(str(split_id[0]))].source.deals_anew(split_id[1:])

    def counts_unread(self, split_id: SplitId) -> bool:
        """Each part has its own rule."""
        return self.parts[self.index_of(str(split_id[0]))].source.counts_unread(split_id[1:])

    @property
    def state_version(self) -> int:
        return STATE_VERSION

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parts, in their order."""
        return tuple(part.name for part in self.parts)

    def index_of(self, name: str) -> int:
        """Return the number of a part.

        Raises:
            StateError: the source has no such part.
        """
        if name not in self.names:
            raise StateError(
                f"the state is of part {shown(name)}, and the source has the parts"
                f" {', '.join(self.names)}: {_FIXED}"
            )
        return self.names.index(name)

    def started(self, index: int, position: SwitchPosition) -> Source[Any, Any]:
        """Return the source of a part, which starts behind what the former part has measured.

        Where that is nothing, because the former part was empty, it starts at its beginning. What
        the user says of names is not stored with the position, so that it can be corrected.
        """
        part = self.parts[index]
        if part.start is None:
            return part.source
        if not isinstance(part.source, SupportsSwitchTo):
            raise ContractViolationError(
                f"{type(part.source).__name__} cannot start where another source has ended"
            )
        known = {scope: names for scope, names in position.meanings.items() if scope != ANY_SCOPE}
        if part.start.identities:
            known[ANY_SCOPE] = dict(part.start.identities)
        position = replace(position, meanings=known)
        started: Source[Any, Any] = cast("Any", part.source).starting_after(position)
        return started

    def measured(self, index: int, position: SwitchPosition, state: Any) -> SwitchPosition:
        """Return what a part that has finished has measured for the next one.

        Unknown if no one asks for it.

        Args:
            index: of the part.
            position: where it has started.
            state: of its enumerator.
        """
        source = self.started(index, position)
        if self.parts[index + 1].start is None or not isinstance(source, SupportsSwitchFrom):
            return SwitchPosition()
        return source.switch_position(state)

    def create_split(
        self, split_id: SplitId, position: Position, attributes: Mapping[str, Any]
    ) -> HybridSplit:
        name, *rest = split_id
        part = next((part for part in self.parts if part.name == name), None)
        if part is None:
            raise ContractViolationError(
                f"{split_id!r} is not a split of the parts {', '.join(self.names)}"
            )
        return HybridSplit(
            part=part.name, split=part.source.create_split(tuple(rest), position, attributes)
        )

    def why_not_continued(self, split: HybridSplit) -> str:
        return self.parts[self.index_of(split.part)].source.why_not_continued(split.split)

    def encode_state(self, state: HybridState) -> Any:
        source = self.parts[self.index_of(state.part)].source
        kept = {"kept": encode_ids(state.kept)} if state.kept else {}
        looks = {"looks": state.looks.to_json()} if state.looks.known else {}
        return {
            "part": state.part,
            "parts": list(self.names),
            "position": state.position.to_json(),
            "measure": self._measured_next(state.part),
            "leftovers": encode_splits(state.leftovers),
            "version": source.state_version,
            "state": source.encode_state(state.state),
            **kept,
            **looks,
        }

    def decode_state(self, version: int, data: Any) -> HybridState:
        if version > STATE_VERSION:
            raise IncompatibleVersionError(
                "state of the enumerator", found=version, supported=STATE_VERSION
            )
        name = str(data["part"])
        # States of older versions do not name all parts.
        former = tuple(map(str, data.get("parts", self.names)))
        if former != self.names:
            raise StateError(
                f"the state is of the parts {', '.join(former)}, and the source has the parts"
                f" {', '.join(self.names)}: {_FIXED}"
            )
        source = self.parts[self.index_of(name)].source
        # What was listed before was measured in the former way: the position would leave it out.
        if data.get("measure", wanted := self._measured_next(name)) != wanted:
            raise StateError(
                f"startAfter has changed while part {name} is read, which measures it. Restore the"
                " former startAfter, or create a new source"
            )
        return HybridState(
            part=name,
            state=source.decode_state(int(data["version"]), data["state"]),
            position=SwitchPosition.from_json(data["position"]),
            leftovers=decode_splits(data["leftovers"], self),
            kept=decode_ids(data.get("kept", [])),
            looks=Looks.from_json(data.get("looks", {})),
        )

    def _measured_next(self, name: str) -> Json:
        """Return what a part measures for the one behind it; None for nothing.

        What the user says of names is not measured, and may change.
        """
        following = self.parts[self.index_of(name) + 1 :]
        start = following[0].start if following else None
        return None if start is None else start.columns.to_json()

    def create_enumerator(
        self, context: SplitEnumeratorContext[HybridSplit]
    ) -> HybridSplitEnumerator:
        return HybridSplitEnumerator(context, self, None)

    def restore_enumerator(
        self, context: SplitEnumeratorContext[HybridSplit], state: HybridState
    ) -> HybridSplitEnumerator:
        return HybridSplitEnumerator(context, self, state)

    def reader_settings(self) -> Mapping[str, Any]:
        parts = {part.name: part.source.reader_settings() for part in self.parts}
        return {KIND: HybridReaderSettings(parts=parts).to_json()}


def checked_hybrid(
    sources: Sequence[tuple[Source[Any, Any], Measure | None]], *, field: str
) -> HybridSource:
    """Return the source that reads others in turn.

    Args:
        sources: each with what the former one measures for its start; None where it starts as it
            says by itself.
        field: path of the list, for messages.

    Raises:
        InvalidSpecError: they cannot be combined. Names the part.
    """
    if len(sources) < FEWEST:
        raise InvalidSpecError(
            "a hybrid source has at least two parts: add one, or read the only one alone",
            field=field,
        )
    names = names_of([source.kind for source, _ in sources])
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidSpecError(
            f"two parts would be called {twice}, which is the kind of one and the number of the"
            " other: put them into another order",
            field=field,
        )
    parts = [
        HybridPart(name=name, source=source, start=start)
        for name, (source, start) in zip(names, sources, strict=True)
    ]
    for number, part in enumerate(parts):
        place = f"{field}[{number}]"
        if number < len(parts) - 1 and part.source.boundedness is not Boundedness.BOUNDED:
            raise InvalidSpecError(
                f"part {part.name} never ends, so part {parts[number + 1].name} would never start."
                " Let it end, or make it the last part",
                field=place,
            )
        if part.source.kind == KIND:
            raise InvalidSpecError(
                "a part cannot be a hybrid source itself: list its parts here", field=place
            )
        if part.start is not None:
            _measure(parts, number, part.start, place)
    return HybridSource(parts=tuple(parts))


def _measure(parts: list[HybridPart], number: int, start: Measure, place: str) -> None:
    """Have the part before measure what this one needs."""
    if number == 0:
        raise InvalidSpecError(
            "the first part has no part before it whose end could be its start", field=place
        )
    former, part = parts[number - 1], parts[number]
    if not isinstance(part.source, SupportsSwitchTo):
        raise InvalidSpecError(
            f"part {part.name} cannot start at a position that was read from records", field=place
        )
    part.source.check_switch(start, field=place)
    if not isinstance(former.source, SupportsSwitchFrom):
        raise InvalidSpecError(
            f"part {former.name} cannot measure where part {part.name} starts: give its start"
            " yourself",
            field=place,
        )
    measuring: Any = former.source.measuring(start, field=place)
    parts[number - 1] = replace(former, source=measuring)
