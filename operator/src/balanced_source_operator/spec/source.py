"""``spec.source``: what is read.

Each connector of this project has a branch; all others share `custom`.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self, cast

from pydantic import ConfigDict, Field, ValidationError, create_model, model_validator
from pydantic_core import PydanticCustomError

from balanced_source.errors import InvalidSpecError
from balanced_source_adapters.connectors import built_in, installed
from balanced_source_operator.contract.base import Model, rule, with_rules
from balanced_source_operator.contract.errors import in_words
from balanced_source_operator.contract.half import OperatorHalf, half_of
from balanced_source_operator.spec.custom import CUSTOM, Custom


class SourceChoice(Model):
    """What is read; exactly one kind."""

    @property
    def kind(self) -> str:
        """Name of the connector."""
        name, value = self._branch()
        return value.connector if name == CUSTOM and isinstance(value, Custom) else name

    @property
    def field(self) -> str:
        """Path of what the user wrote for the connector."""
        name, _ = self._branch()
        return f"spec.source.{name}.config" if name == CUSTOM else f"spec.source.{name}"

    def config(self, half: OperatorHalf[Any]) -> Model:
        """Return what the user wrote for the connector, as its model.

        Args:
            half: of the connector `kind`.

        Raises:
            InvalidSpecError: the connector's model refuses it. Names the field.
        """
        name, value = self._branch()
        if name != CUSTOM or not isinstance(value, Custom):
            return value
        try:
            made: Model = half.spec.model_validate(value.config)
        except ValidationError as error:
            place, message = in_words(error, half.words)
            raise InvalidSpecError(
                message, field=".".join(filter(None, [self.field, place]))
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
            kinds = ", ".join(type(self).model_fields)
            raise PydanticCustomError(
                "not_one_kind", "set exactly one of: {kinds}", {"kinds": kinds}
            )
        return self

    def _branch(self) -> tuple[str, Model]:
        name = self._chosen()[0]
        return name, cast("Model", getattr(self, name))

    def _chosen(self) -> list[str]:
        return [kind for kind in type(self).model_fields if getattr(self, kind) is not None]


def choice_of(halves: Mapping[str, OperatorHalf[Any]]) -> type[SourceChoice]:
    """Return the model of ``spec.source`` with a branch for each kind, and one for all others."""
    kinds = (*halves, CUSTOM)

    class OneOf(SourceChoice):
        model_config = ConfigDict(json_schema_extra=with_rules(_exactly_one(kinds)))

    fields: dict[str, Any] = {
        kind: (half.spec | None, Field(default=None, description=half.description))
        for kind, half in halves.items()
    }
    fields[CUSTOM] = (Custom | None, Field(default=None, description=Custom.__doc__))
    return _model(OneOf, fields)


def _model(base: type[SourceChoice], fields: Mapping[str, Any]) -> type[SourceChoice]:
    made: type[SourceChoice] = create_model(
        "Source", __base__=base, __doc__=SourceChoice.__doc__, **fields
    )
    return made


def _exactly_one(kinds: Sequence[str]) -> dict[str, str]:
    present = ", ".join(f"has(self.{kind})" for kind in kinds)
    return rule(f"[{present}].filter(x, x).size() == 1", f"set exactly one of: {', '.join(kinds)}")


BRANCHES: Final[Mapping[str, OperatorHalf[Any]]] = {
    kind: half_of(kind, built_in()) for kind in built_in().kinds if built_in().get(kind).operator
}
"""Operator halves of the connectors that the CRD has a branch for: those of this project that have
one."""

if TYPE_CHECKING:
    Source = SourceChoice
else:
    Source = choice_of(BRANCHES)
