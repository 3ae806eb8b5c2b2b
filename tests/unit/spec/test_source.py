"""``spec.source`` is put together from the operator halves of connectors."""

from types import MappingProxyType
from typing import Any

import pytest
from pydantic import ValidationError

from balanced_source.api import Source
from balanced_source_adapters.connectors import BUILT_IN
from balanced_source_operator.contract.base import Model
from balanced_source_operator.contract.half import Common, OperatorHalf, Texts, half_of
from balanced_source_operator.kafka.half import KafkaOperatorHalf
from balanced_source_operator.spec.crd import structural_schema
from balanced_source_operator.spec.source import BRANCHES, choice_of
from support.builders import make_spec


class FilesSpec(Model):
    """Files of folders."""

    folder: str
    """Where they are."""


class FilesHalf(OperatorHalf[FilesSpec]):
    spec = FilesSpec
    description = "Lines of files."

    def to_source(self, spec: FilesSpec, common: Common, texts: Texts, *, field: str) -> Source[Any, Any]:
        raise NotImplementedError


BOTH = choice_of(MappingProxyType({"files": FilesHalf(), "kafka": KafkaOperatorHalf()}))
FILES = {"folder": "/data"}
KAFKA = {"clusters": [{"name": "c", "bootstrapServers": "b:1"}], "subscription": {"topics": ["t"]}}


def test_the_crd_has_a_branch_for_each_connector_of_the_project() -> None:
    """Plug-ins have none: installing one never changes the CRD."""
    assert BRANCHES.keys() == BUILT_IN.keys()
    assert {kind: type(half) for kind, half in BRANCHES.items()} == {kind: type(half_of(kind)) for kind in BRANCHES}


def test_a_spec_names_its_kind_and_its_branch() -> None:
    source = make_spec().source

    assert source.kind == "kafka"
    assert isinstance(source.branch, half_of("kafka").spec)


def test_several_kinds_are_a_choice_that_the_api_server_checks() -> None:
    schema = structural_schema(BOTH)

    assert list(schema["properties"]) == ["files", "kafka"]
    assert "required" not in schema
    assert schema["properties"]["files"]["description"] == "Lines of files."
    (rule,) = schema["x-kubernetes-validations"]
    assert rule == {
        "rule": "[has(self.files), has(self.kafka)].filter(x, x).size() == 1",
        "message": "set exactly one of: files, kafka",
    }


@pytest.mark.parametrize(("value", "kind"), [({"files": FILES}, "files"), ({"kafka": KAFKA}, "kafka")])
def test_one_of_several_kinds_is_taken(value: dict[str, Any], kind: str) -> None:
    chosen = BOTH.model_validate(value)

    assert (chosen.kind, chosen.branch) == (kind, getattr(chosen, kind))


@pytest.mark.parametrize("value", [{}, {"files": FILES, "kafka": KAFKA}])
def test_none_or_two_kinds_are_refused(value: dict[str, Any]) -> None:
    """In local mode no API server checks the rule."""
    with pytest.raises(ValidationError, match="set exactly one of: files, kafka"):
        BOTH.model_validate(value)


def test_a_half_refuses_no_change_and_needs_no_texts_by_default() -> None:
    half = FilesHalf()

    assert half.texts(FilesSpec(folder="/data")) == ()
    half.check_change(Source, Source, field="spec.source.files")  # type: ignore[arg-type]
