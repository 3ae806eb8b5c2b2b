"""A choice between kinds of sources: a branch for each connector, and one for all others.

``spec.source`` is one, and each part of a hybrid source.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator
from pydantic_core import PydanticCustomError

from balanced_source_adapters.connectors import built_in, installed
from balanced_source_operator.contract.base import Model, rule, with_rules
from balanced_source_operator.contract.blame import named_in
from balanced_source_operator.contract.custom import CUSTOM, Custom
from balanced_source_operator.contract.errors import InvalidConfigError
from balanced_source_operator.contract.half import OperatorHalf, half_of

SOURCE: Final = "spec.source"
"""Path of the choice that every resource has."""


class SourceChoice(Model):
    """What is read; exactly one kind."""

    kinds: ClassVar[tuple[str, ...]] = ()
    """Names of the branches."""

    @property
    def kind(self) -> str:
        """Name of the connector."""
        name, value = self._branch()
        return value.connector if name == CUSTOM and isinstance(value, Custom) else name

    @property
    def field(self) -> str:
        """Path of what the user wrote for the connector in ``spec.source``."""
        return self.field_in(SOURCE)

    def field_in(self, place: str) -> str:
        """Return the path of what the user wrote for the connector.

        Args:
            place: path of the choice.
        """
        name, _ = self._branch()
        return f"{place}.{name}.config" if name == CUSTOM else f"{place}.{name}"

    def half(self, place: str = SOURCE) -> OperatorHalf[Any]:
        """Return the operator half of the connector.

        Args:
            place: path of the choice, for messages.

        Raises:
            ConnectorError: it cannot be used. Names the field.
        """
        name, _ = self._branch()
        with named_in(f"{place}.{name}.connector" if name == CUSTOM else f"{place}.{name}"):
            return half_of(self.kind)

    def config(self, half: OperatorHalf[Any], place: str = SOURCE) -> BaseModel:
        """Return what the user wrote for the connector, as its model.

        Args:
            half: of the connector `kind`.
            place: path of the choice, for messages.

        Raises:
            InvalidSpecError: the connector's model refuses it. Names the field.
        """
        name, value = self._branch()
        if name != CUSTOM or not isinstance(value, Custom):
            return value
        try:
            made: BaseModel = half.spec.model_validate(value.config)
        except ValidationError as error:
            raise InvalidConfigError(
                error, place=self.field_in(place), words=half.words, fields=_names(half.spec)
            ) from error
        return made

    @model_validator(mode="before")
    @classmethod
    def _take_named(cls, value: Any) -> Any:
        """Accept the branch of a connector that ``balanced-source crd --with`` added to the CRD."""
        if not isinstance(value, Mapping):
            return value
        named = [
            kind for kind in value if kind not in cls.model_fields and kind in installed().kinds
        ]
        if len(named) != 1 or CUSTOM in value:
            return value
        rest = {kind: branch for kind, branch in value.items() if kind not in named}
        return {**rest, CUSTOM: {"connector": named[0], "config": value[named[0]]}}

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if len(self._chosen()) != 1:
            kinds = ", ".join(self.kinds)
            raise PydanticCustomError(
                "not_one_kind", "set exactly one of: {kinds}", {"kinds": kinds}
            )
        return self

    def _branch(self) -> tuple[str, BaseModel]:
        name = self._chosen()[0]
        return name, cast("BaseModel", getattr(self, name))

    def _chosen(self) -> list[str]:
        return [kind for kind in self.kinds if getattr(self, kind) is not None]


def _names(model: type[BaseModel]) -> list[str]:
    """Return the names that users write for the fields of a model."""
    return [field.alias or name for name, field in model.model_fields.items()]


def built_in_halves(*, besides: str = "") -> Mapping[str, OperatorHalf[Any]]:
    """Return the operator halves of the connectors of this project that have one, by their kind.

    Args:
        besides: a kind that is left out: that of a connector made of others asks for these.
    """
    known = built_in()
    kinds = [kind for kind in known.kinds if kind != besides and known.get(kind).operator]
    return {kind: half_of(kind, known) for kind in kinds}


def choice_of(
    halves: Mapping[str, OperatorHalf[Any]], base: type[SourceChoice] = SourceChoice
) -> type[SourceChoice]:
    """Return the model of a choice with a branch for each kind, and one for all others.

    Args:
        halves: of the connectors that get a branch.
        base: has the fields that the model has besides the branches.
    """
    names = (*halves, CUSTOM)

    class OneOf(base):  # type: ignore[valid-type, misc]
        model_config = ConfigDict(json_schema_extra=with_rules(_exactly_one(names)))
        kinds: ClassVar[tuple[str, ...]] = names

    fields: dict[str, Any] = {
        kind: (half.spec | None, Field(default=None, description=half.description))
        for kind, half in halves.items()
    }
    fields[CUSTOM] = (Custom | None, Field(default=None, description=Custom.__doc__))
    made: type[SourceChoice] = create_model(
        "Source", __base__=OneOf, __doc__=base.__doc__, **fields
    )
    return made


def _exactly_one(kinds: Sequence[str]) -> dict[str, str]:
    present = ", ".join(f"has(self.{kind})" for kind in kinds)
    return rule(f"[{present}].filter(x, x).size() == 1", f"set exactly one of: {', '.join(kinds)}")
