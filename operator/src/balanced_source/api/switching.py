"""How one part of a hybrid source (FLIP-150) starts where the former part has ended.

The former part measures what it reads while it lists it (`SupportsSwitchFrom`). The measurement
becomes a `SwitchPosition`, from which the next part starts (`SupportsSwitchTo`). This is what
FLIP-150 calls the switch context.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self, TypeAlias

from balanced_source.api.context import AsyncCall
from balanced_source.api.splits import Json
from balanced_source.errors import CorruptDocumentError

_MALFORMED = (TypeError, ValueError, KeyError, AttributeError)

Meanings: TypeAlias = Mapping[str, Mapping[str, str]]
"""Scope → name of splits → identity of what has this name; empty if nothing has it."""

ANY_SCOPE: Final = ""
"""Scope of what the user says of names; no part of a source is called that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What is measured: the newest time of a column, or the offsets in three columns.

    Exactly one of both.

    Attributes:
        time: column with the time of a record: a timestamp, or a whole number of milliseconds since
            the epoch.
        offsets: columns that say where a record is in the next part: the name and the number that
            identify a split, and the offset in it. For Kafka: topic, partition and offset.
        identities: name → identity of what the offsets are of, as far as the user says it. For
            Kafka: topic and id of the topic.
    """

    time: str | None = None
    offsets: tuple[str, str, str] | None = None
    identities: tuple[tuple[str, str], ...] = ()

    @property
    def columns(self) -> Self:
        """What is measured, without what the user says of names, which may change."""
        return replace(self, identities=())

    def to_json(self) -> Json:
        """Return the JSON value."""
        known = {"identities": dict(self.identities)} if self.identities else {}
        columns = None if self.offsets is None else list(self.offsets)
        return {"time": self.time, "offsets": columns, **known}

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Inverse of `to_json`; any error means that the value is not one."""
        columns = data["offsets"]
        if columns is None:
            return cls(time=str(data["time"]))
        name, number, offset = map(str, columns)
        known = data.get("identities", {})
        identities = tuple(sorted((str(name), str(identity)) for name, identity in known.items()))
        return cls(offsets=(name, number, offset), identities=identities)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchPosition:
    """Where the next part starts.

    Attributes:
        time: of the newest record that was read, in milliseconds since the epoch; None if no time
            was measured.
        offsets: name and number of a split → offset behind the last record that was read.
        meanings: scope → name → what it stood for when the first part was begun, see
            `SupportsSwitchTo.meanings`. What is missing is unknown.
    """

    time: int | None = None
    offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)
    meanings: Meanings = field(default_factory=dict)

    def merged(self, other: "SwitchPosition") -> "SwitchPosition":
        """Return the position behind everything that either of both has seen."""
        times = [time for time in (self.time, other.time) if time is not None]
        keys = self.offsets.keys() | other.offsets.keys()
        furthest = {key: max(self.offsets.get(key, 0), other.offsets.get(key, 0)) for key in keys}
        return SwitchPosition(time=max(times, default=None), offsets=furthest)

    def to_json(self) -> Json:
        """Return the JSON value; equal positions give equal JSON."""
        known = {"meanings": self.meanings} if self.meanings else {}
        return {
            "time": self.time,
            "offsets": [[name, n, offset] for (name, n), offset in sorted(self.offsets.items())],
            **known,
        }

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Inverse of `to_json`; None is the position before anything was measured.

        Raises:
            CorruptDocumentError: not of that form.
        """
        if data is None:
            return cls()
        try:
            time, offsets = (
                data["time"],
                {(str(name), int(n)): int(offset) for name, n, offset in data["offsets"]},
            )
            meanings = meanings_from_json(data.get("meanings", {}))
            return cls(time=None if time is None else int(time), offsets=offsets, meanings=meanings)
        except _MALFORMED as error:
            raise CorruptDocumentError(f"malformed switch position: {error!r}") from error


def meanings_from_json(data: Any) -> Meanings:
    """Return the meanings that JSON holds; any error means that the value is not one."""
    return {
        str(scope): {str(name): str(meaning) for name, meaning in names.items()}
        for scope, names in data.items()
    }


class SupportsSwitchFrom(ABC):
    """A source that can measure what it reads, so that another one starts behind it.

    Mixed into a `Source`.
    """

    __slots__ = ()

    @abstractmethod
    def measuring(self, measure: Measure, *, field: str) -> Self:
        """Return the source, which measures what it lists.

        Args:
            measure: what.
            field: path of the setting, for messages.

        Raises:
            InvalidSpecError: this source cannot measure that. Names the field.
        """

    @abstractmethod
    def switch_position(self, state: Any) -> SwitchPosition:
        """Return what was measured, from the state of an enumerator that has finished."""


class SupportsSwitchTo(ABC):
    """A source that can start where another one has ended. Mixed into a `Source`."""

    __slots__ = ()

    @abstractmethod
    def check_switch(self, measure: Measure, *, field: str) -> None:
        """Check that the source can start at a position that is measured so.

        Raises:
            InvalidSpecError: it cannot. Names the field.
        """

    @abstractmethod
    def starting_after(self, position: SwitchPosition) -> Self:
        """Return the source, which starts behind the records that a position describes.

        A position without time and offsets means that nothing was read: reading starts at the
        beginning.
        """

    def looks(self) -> Mapping[str, AsyncCall]:
        """Return the calls that tell what names in a position mean now; scope → call.

        They are made when the first part is begun, and their answers are kept until the switch. So
        the source notices whether a name means something else by then: a topic that was deleted
        and created again, say. By default, names always mean the same.
        """
        return {}

    def meanings(self, call: AsyncCall, result: Any) -> Mapping[str, str]:
        """Return what names mean, from the answer to a call of `looks`: name → identity.

        The identity is empty if nothing has this name. A name that is missing is not compared.
        """
        return {}
