"""``spec.source``: what is read. The connectors of this project are its branches, each by the model of its own."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Self, cast

from pydantic import ConfigDict, Field, create_model, model_validator
from pydantic_core import PydanticCustomError

from balanced_source_adapters.connectors import built_in
from balanced_source_operator.contract.base import Model, rule, with_rules
from balanced_source_operator.contract.half import OperatorHalf, half_of


class SourceChoice(Model):
    """What is read; exactly one kind."""

    @property
    def kind(self) -> str:
        """Name of the connector."""
        return self._chosen()[0]

    @property
    def branch(self) -> Model:
        """What the user wrote for it."""
        return cast("Model", getattr(self, self.kind))

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if len(self._chosen()) != 1:
            kinds = ", ".join(type(self).model_fields)
            raise PydanticCustomError("not_one_kind", "set exactly one of: {kinds}", {"kinds": kinds})
        return self

    def _chosen(self) -> list[str]:
        return [kind for kind in type(self).model_fields if getattr(self, kind) is not None]


def choice_of(halves: Mapping[str, OperatorHalf[Any]]) -> type[SourceChoice]:
    """Return the model of ``spec.source`` with a branch for each kind."""
    if len(halves) == 1:
        fields = {kind: (half.spec, Field(description=half.description)) for kind, half in halves.items()}
        return _model(SourceChoice, fields)

    class OneOf(SourceChoice):
        model_config = ConfigDict(json_schema_extra=with_rules(_exactly_one(halves)))

    optional: dict[str, Any] = {
        kind: (half.spec | None, Field(default=None, description=half.description)) for kind, half in halves.items()
    }
    return _model(OneOf, optional)


def _model(base: type[SourceChoice], fields: Mapping[str, Any]) -> type[SourceChoice]:
    made: type[SourceChoice] = create_model("Source", __base__=base, __doc__=SourceChoice.__doc__, **fields)
    return made


def _exactly_one(halves: Mapping[str, Any]) -> dict[str, str]:
    present = ", ".join(f"has(self.{kind})" for kind in halves)
    return rule(f"[{present}].filter(x, x).size() == 1", f"set exactly one of: {', '.join(halves)}")


BRANCHES: Final[Mapping[str, OperatorHalf[Any]]] = {kind: half_of(kind, built_in()) for kind in built_in().kinds}
"""Operator halves of the connectors that the CRD has a branch for: those of this project and no others."""

if TYPE_CHECKING:
    Source = SourceChoice
else:
    Source = choice_of(BRANCHES)
