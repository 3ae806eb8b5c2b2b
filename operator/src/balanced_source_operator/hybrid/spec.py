"""``spec.source.hybrid`` as pydantic models: this branch of the CRD."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Self

from pydantic import ConfigDict, Field, RootModel, model_validator
from pydantic_core import PydanticCustomError

from balanced_source.api import Measure
from balanced_source.connectors.hybrid import FEWEST, KIND
from balanced_source_operator.contract.base import LINE, Model, rule, with_rules
from balanced_source_operator.contract.choice import SourceChoice, built_in_halves, choice_of
from balanced_source_operator.contract.custom import CUSTOM

MOST: Final = 4
"""Parts. The API server estimates the cost of a rule by the largest list that it may meet."""

_HALVES: Final = {
    kind: half for kind, half in built_in_halves(besides=KIND).items() if half.can_be_part
}

_EITHER: Final = "set either time or offsets"
_NESTED: Final = "a part cannot be a hybrid source itself: list its parts here"

Column = Annotated[str, Field(min_length=1, max_length=256, pattern=LINE)]
"""Name of a column."""


Topic = Annotated[str, Field(min_length=1, max_length=249, pattern=LINE)]
"""Name of a topic."""

TopicId = Annotated[str, Field(min_length=1, max_length=64, pattern=LINE)]
"""Id of a topic."""


class OffsetColumns(Model):
    """Columns of the part before that hold Kafka's offsets."""

    topic: Column = "topic"
    """Column with the topic of a record."""

    partition: Column = "partition"
    """Column with the partition of a record."""

    offset: Column = "offset"
    """Column with the offset of a record."""

    topic_ids: Annotated[dict[Topic, TopicId], Field(min_length=1, max_length=100)] | None = None
    """Topic, and the id that Kafka gave it when the history was written. A topic with another id
    was deleted and created again since then, and is handled by `onDataLoss`. Absent: ids are
    compared with those that topics have when the first part is begun."""


class StartAfter(Model):
    """What the part before measures, so that this part starts behind it."""

    model_config = ConfigDict(
        json_schema_extra=with_rules(rule("has(self.time) != has(self.offsets)", _EITHER))
    )

    time: Column | None = None
    """Column with the time of a record: a timestamp, or milliseconds since the epoch. Reading
    starts one millisecond after the newest time."""

    offsets: OffsetColumns | None = None
    """Reading starts behind the largest offset of each partition. This is exact."""

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if (self.time is None) == (self.offsets is None):
            raise PydanticCustomError("not_one_measure", _EITHER)
        return self

    @property
    def measure(self) -> Measure:
        """The same as the pure library knows it."""
        if self.offsets is None:
            return Measure(time=self.time)
        columns = self.offsets
        return Measure(
            offsets=(columns.topic, columns.partition, columns.offset),
            identities=tuple(sorted((columns.topic_ids or {}).items())),
        )


class PartChoice(SourceChoice):
    """A source that is read as one part; exactly one kind."""

    start_after: StartAfter | None = None
    """Where this part starts. Absent: where it says itself."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_nested(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and KIND in value:
            raise PydanticCustomError("nested", _NESTED)
        return value


Part = choice_of(_HALVES, PartChoice)


def _both(field: str, then: str) -> str:
    """Return CEL that says that part `i` has a field if it had, and what is true of both then."""
    new, old = f"self[i].{field}", f"oldSelf[i].{field}"
    return f"has({new}) == has({old}) && (!has({new}) || ({then}))"


def _equal(*fields: str) -> str:
    """Return CEL that says that fields of part `i` are as before."""
    return " && ".join(f"self[i].{field} == oldSelf[i].{field}" for field in fields)


_TIME, _OFFSETS = "startAfter.time", "startAfter.offsets"
# Ids of topics may change: they say of which topics the history is.
_MEASURED: Final = (
    _both(_TIME, _equal(_TIME))
    + " && "
    + _both(_OFFSETS, _equal(*(f"{_OFFSETS}.{name}" for name in ("topic", "partition", "offset"))))
)

_KINDS: Final = " && ".join(f"has(self[i].{kind}) == has(oldSelf[i].{kind})" for kind in Part.kinds)
_EACH: Final = (
    f"self.size() == oldSelf.size() && {list(range(MOST))}.all(i, i >= self.size() || ({{}}))"
)


class HybridSpec(RootModel[Annotated[list[Part], Field(min_length=FEWEST, max_length=MOST)]]):  # type: ignore[valid-type]
    """Sources that are read in turn, such as files and then Kafka.

    The next part starts when everything of the part before is read and committed. All parts but
    the last one must end.
    """

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra=with_rules(
            rule(
                _EACH.format(_KINDS),
                "kinds and order of the parts cannot be changed: create a new source instead",
            ),
            rule(
                _EACH.format(_both("startAfter", _MEASURED)),
                "startAfter cannot be changed, except for topicIds: create a new source instead",
            ),
            rule(
                f"self.all(p, !has(p.{CUSTOM}) || p.{CUSTOM}.connector != '{KIND}')",
                _NESTED,
            ),
        ),
    )

    @property
    def parts(self) -> tuple[PartChoice, ...]:
        """The parts, in the order in which they are read."""
        return tuple(self.root)
