"""Where reading starts and stops.

FLIP-27's ``OffsetsInitializer``, as values that an adapter with a client resolves.

An initializer gives each partition a chain of *wishes*, tried in turn until one has an
answer: the commit of a group, else the latest offset, say. Chains are data, so that all questions
of a discovery are asked in a few requests, and so that the same choice means the same for start and
stop. `resolution.resolve` asks them.
"""

import enum
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, TypeAlias

from balanced_source.api import ANY_SCOPE

NO_TOPIC_ID: Final = "A" * 22
"""The id of all topics of a cluster that gives them none, as Kafka before 2.8."""

TOPIC_ID: Final = re.compile(r"[A-Za-z0-9+/_-]{22}(==)?")
"""Form of the id of a topic, in both alphabets of Base64."""

_TO_ANSWERED: Final = str.maketrans("-_", "+/", "=")

EARLIEST_OFFSET: Final = -2
"""What Spark's JSON writes for the first offset of a partition."""

LATEST_OFFSET: Final = -1
"""What Spark's JSON writes for the end of a partition."""


def identity_of(topic_id: str | None) -> str | None:
    """Return what tells a topic from a former one of its name; None if its cluster does not say.

    A topic gets an id when its cluster is upgraded, and is the same topic after that.
    """
    return None if topic_id == NO_TOPIC_ID else topic_id


class Anchor(enum.Enum):
    """An end of a partition."""

    EARLIEST = "Earliest"
    LATEST = "Latest"


@dataclass(frozen=True, slots=True)
class AtOffset:
    """Exactly this offset."""

    offset: int


@dataclass(frozen=True, slots=True)
class AtTime:
    """First record whose timestamp (milliseconds since the epoch) is at or after this.

    No answer if there is none.
    """

    millis: int


@dataclass(frozen=True, slots=True)
class AtCommit:
    """Committed offset of a consumer group.

    No answer if there is none, or if it does not exist any more.
    """

    group: str


@dataclass(frozen=True, slots=True)
class AfterOffset:
    """The offset where a history ends.

    Refused if records behind it are gone, unless they may be lost.
    """

    offset: int
    may_lose: bool


@dataclass(frozen=True, slots=True)
class AfterTime:
    """First record at or after the time where a history ends; no answer if there is none.

    Refused if records before that one are gone, unless they may be lost: some of them may be newer
    than the history.
    """

    millis: int
    may_lose: bool


Wish: TypeAlias = Anchor | AtOffset | AtTime | AtCommit | AfterOffset | AfterTime
"""One way to find an offset."""


class OffsetsInitializer(ABC):
    """A choice of an offset per partition. Values: equal choices compare equal."""

    __slots__ = ()

    @abstractmethod
    def wishes(self, topic: str, partition: int) -> tuple[Wish, ...]:
        """What to try, in this order.

        A chain that ends without an answer is an error that a user has to see.
        """

    def later(self) -> "OffsetsInitializer":
        """Return the choice for partitions that are found after the first discovery.

        They belong to what was asked for, and their first records may be older than the discovery
        that found them.
        """
        return EARLIEST


@dataclass(frozen=True, slots=True)
class FromAnchor(OffsetsInitializer):
    """One end. Latest is resolved when the split is discovered, never at the first read."""

    anchor: Anchor

    def wishes(self, topic: str, partition: int) -> tuple[Wish, ...]:
        return (self.anchor,)


@dataclass(frozen=True, slots=True)
class FromCommit(OffsetsInitializer):
    """Where a consumer group stands; `reset` for partitions without a commit, None refuses them."""

    group: str
    reset: Anchor | None = None

    def wishes(self, topic: str, partition: int) -> tuple[Wish, ...]:
        return (AtCommit(self.group), *_reset(self.reset))


@dataclass(frozen=True, slots=True)
class FromTime(OffsetsInitializer):
    """First record at or after a moment.

    `reset` for partitions without such a record, None refuses them.

    Flink's initializer takes the latest offset then; Spark's ``startingOffsetsByTimestampStrategy``
    knows both.
    """

    millis: int
    reset: Anchor | None = Anchor.LATEST

    def wishes(self, topic: str, partition: int) -> tuple[Wish, ...]:
        return (AtTime(self.millis), *_reset(self.reset))


@dataclass(frozen=True, slots=True, kw_only=True)
class PerPartition(OffsetsInitializer):
    """A wish for each listed (topic, partition), with `reset` behind it.

    `default` for those that are not listed.
    """

    listed: Mapping[tuple[str, int], Wish] = field(default_factory=dict)
    default: OffsetsInitializer
    reset: Anchor | None = None

    def wishes(self, topic: str, partition: int) -> tuple[Wish, ...]:
        wish = self.listed.get((topic, partition))
        return (
            self.default.wishes(topic, partition) if wish is None else (wish, *_reset(self.reset))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PerTopic(OffsetsInitializer):
    """An initializer for each listed topic; `default` for the others."""

    topics: Mapping[str, OffsetsInitializer] = field(default_factory=dict)
    default: OffsetsInitializer

    def wishes(self, topic: str, partition: int) -> tuple[Wish, ...]:
        return self.topics.get(topic, self.default).wishes(topic, partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterHistory(OffsetsInitializer):
    """Behind the records that another source has read before.

    Attributes:
        millis: first time in milliseconds that was not read; None: `offsets` say where reading
            starts.
        offsets: (topic, partition) → first offset that was not read. Partitions that are not listed
            are read from their first record: nothing of them was read before.
        topics: of these offsets.
        is_foreign: whether there are such offsets, and none of their topics is read.
        may_lose: whether reading starts although records behind the history are gone.
        meanings: cluster → topic → id of the topic when the history was begun; empty if there was
            no such topic. What is missing is unknown. What the user says is under `ANY_SCOPE`.
        is_later: see `later`.
    """

    millis: int | None = None
    offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)
    topics: frozenset[str] = frozenset()
    is_foreign: bool = False
    may_lose: bool = False
    meanings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    is_later: bool = False

    def later(self) -> OffsetsInitializer:
        """Return where partitions start that are found after the first discovery.

        Behind the history only where their topic is known to be the one that the history is of.
        Any other topic may have been created since the first discovery.
        """
        return replace(self, is_later=True) if self.offsets else EARLIEST

    def is_same(self, cluster: str, topic: str, topic_id: str | None) -> bool:
        """Whether a topic is known to be the one that the history has offsets of."""
        former, now = self._former(cluster, topic), identity_of(topic_id)
        if topic not in self.topics or not former or not now:
            return False
        return as_answered(now) == as_answered(former)

    def _former(self, cluster: str, topic: str) -> str | None:
        return self.given(topic) or self.meanings.get(cluster, {}).get(topic)

    def is_other(self, cluster: str, topic: str, topic_id: str | None) -> bool:
        """Whether a topic is another one than when the history was begun."""
        former = self._former(cluster, topic)
        # A topic that is created meanwhile is another one only if the history has offsets of it.
        if former is None or not (former or topic in self.topics):
            return False
        now = identity_of(topic_id)
        if now is None or identity_of(former) is None:
            return False
        return as_answered(now) != as_answered(former)

    def given(self, topic: str) -> str | None:
        """Return the id that the user gives for a topic of the history, as the user writes it."""
        return self.meanings.get(ANY_SCOPE, {}).get(topic)

    def wishes(self, topic: str, partition: int) -> tuple[Wish, ...]:
        if self.millis is not None:
            return (AfterTime(self.millis, self.may_lose), Anchor.LATEST)
        if topic not in self.topics:
            return (Anchor.EARLIEST,)
        return (AfterOffset(self.first_unread(topic, partition), self.may_lose),)

    def first_unread(self, topic: str, partition: int) -> int:
        """Return the first offset of a partition that the history does not have."""
        # A partition without records in the history begins at 0, unless retention took them.
        return self.offsets.get((topic, partition), 0)


def as_answered(topic_id: str) -> str:
    """Return the id of a topic as the client library writes it.

    Kafka's own tools write it in the other alphabet of Base64, with - and _ for + and /.
    """
    return topic_id.translate(_TO_ANSWERED)


def wish_of(offset: int) -> Wish:
    """The wish that a number in Spark's JSON means.

    −2 earliest, −1 latest, else the offset itself.
    """
    return {EARLIEST_OFFSET: Anchor.EARLIEST, LATEST_OFFSET: Anchor.LATEST}.get(offset) or AtOffset(
        offset
    )


def _reset(anchor: Anchor | None) -> tuple[Wish, ...]:
    return () if anchor is None else (anchor,)


EARLIEST: Final = FromAnchor(Anchor.EARLIEST)
LATEST: Final = FromAnchor(Anchor.LATEST)


def initializer_text(value: Any) -> str:
    """Return a text that is equal for equal initializers, in every version.

    What it is made of, by name.
    """
    return json.dumps(_parts(value), separators=(",", ":"), sort_keys=True)


def initializer_of(text: str) -> OffsetsInitializer:
    """Return the initializer that a text of `initializer_text` describes.

    Raises:
        ValueError: the text describes no initializer.
    """
    try:
        value = _value(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{text[:100]!r} describes no offsets") from error
    if not isinstance(value, OffsetsInitializer):
        # Of the text
        raise ValueError(f"{text[:100]!r} describes no offsets of all partitions")  # noqa: TRY004
    return value


def _value(parts: Any) -> Any:
    """Return the initializer or wish that is made of these parts; see `_parts`."""
    if isinstance(parts, str):
        return Anchor(parts)
    [(name, values)] = parts.items()
    return _KINDS[name](**{key: _FIELDS[key](value) for key, value in values.items()})


def _parts(value: Any) -> Any:
    match value:
        case Anchor():
            return value.value
        case Mapping():
            return sorted([_parts(key), _parts(part)] for key, part in value.items())
        case tuple():
            return [_parts(part) for part in value]
        case None | str() | int():
            return value
        case _:
            return {
                _NAMES[type(value)]: {f.name: _parts(getattr(value, f.name)) for f in fields(value)}
            }


_NAMES: Final[Mapping[type, str]] = {
    AtOffset: "offset",
    AtTime: "time",
    AtCommit: "commit",
    FromAnchor: "fromAnchor",
    FromCommit: "fromCommit",
    FromTime: "fromTime",
    PerPartition: "perPartition",
    PerTopic: "perTopic",
}
"""Stored: never changed."""

_KINDS: Final[Mapping[str, type]] = {name: kind for kind, name in _NAMES.items()}

_FIELDS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "offset": int,
    "millis": int,
    "group": str,
    "anchor": Anchor,
    "reset": lambda part: None if part is None else Anchor(part),
    "default": _value,
    "listed": lambda part: {
        (str(topic), int(number)): _value(wish) for (topic, number), wish in part
    },
    "topics": lambda part: {str(topic): _value(inner) for topic, inner in part},
}
"""Field of an initializer or wish → its value from its parts."""
