"""``spec.source`` is put together from the operator halves of connectors."""

from types import MappingProxyType
from typing import Any

import pytest
from pydantic import ValidationError

from balanced_source.api import Source
from balanced_source.errors import InvalidSpecError
from balanced_source_adapters.connectors import Connectors
from balanced_source_adapters.registrations import BUILT_IN, Registration
from balanced_source_operator.contract import choice as choice_module
from balanced_source_operator.contract.base import Model
from balanced_source_operator.contract.choice import choice_of
from balanced_source_operator.contract.half import Common, OperatorHalf, Texts, half_of
from balanced_source_operator.kafka.half import KafkaOperatorHalf
from balanced_source_operator.spec import crd as crd_module
from balanced_source_operator.spec.crd import structural_schema
from balanced_source_operator.spec.source import BRANCHES
from balanced_source_operator.validation.manifest import check_spec
from support.builders import make_spec


class FilesSpec(Model):
    """Files of folders."""

    folder: str
    """Where they are."""

    max_depth: int = 1
    """Of folders in folders."""


class FilesHalf(OperatorHalf[FilesSpec]):
    spec = FilesSpec
    description = "Lines of files."

    def to_source(
        self, spec: FilesSpec, common: Common, texts: Texts, *, field: str
    ) -> Source[Any, Any]:
        raise NotImplementedError


BOTH = choice_of(MappingProxyType({"files": FilesHalf(), "kafka": KafkaOperatorHalf()}))
FILES = {"folder": "/data"}
KAFKA = {"clusters": [{"name": "c", "bootstrapServers": "b:1"}], "subscription": {"topics": ["t"]}}


def test_a_connector_that_does_not_say_otherwise_may_change_everything() -> None:
    unused: Any = None

    assert FilesHalf().fixed(unused) == {}


def test_the_crd_has_a_branch_for_each_connector_of_the_project() -> None:
    """Plug-ins have none: installing one never changes the CRD."""
    assert BRANCHES.keys() == BUILT_IN.keys()
    assert {kind: type(half) for kind, half in BRANCHES.items()} == {
        kind: type(half_of(kind)) for kind in BRANCHES
    }


def test_a_spec_names_its_kind_and_its_branch() -> None:
    source = make_spec().source

    assert source.kind == "kafka"
    assert source.field == "spec.source.kafka"
    assert isinstance(source.config(half_of("kafka")), half_of("kafka").spec)


def test_several_kinds_are_a_choice_that_the_api_server_checks() -> None:
    schema = structural_schema(BOTH)

    assert list(schema["properties"]) == ["files", "kafka", "custom"]
    assert "required" not in schema
    assert schema["properties"]["files"]["description"] == "Lines of files."
    (rule,) = schema["x-kubernetes-validations"]
    assert rule == {
        "rule": "[has(self.files), has(self.kafka), has(self.custom)].filter(x, x).size() == 1",
        "message": "set exactly one of: files, kafka, custom",
    }


@pytest.mark.parametrize(
    ("value", "kind"), [({"files": FILES}, "files"), ({"kafka": KAFKA}, "kafka")]
)
def test_one_of_several_kinds_is_chosen(value: dict[str, Any], kind: str) -> None:
    chosen = BOTH.model_validate(value)

    assert (chosen.kind, chosen.config(FilesHalf())) == (kind, getattr(chosen, kind))


@pytest.mark.parametrize("value", [{}, {"files": FILES, "kafka": KAFKA}])
def test_no_kind_or_two_kinds_are_rejected(value: dict[str, Any]) -> None:
    """In local mode no API server checks the rule."""
    with pytest.raises(ValidationError, match="set exactly one of: files, kafka"):
        BOTH.model_validate(value)


def test_the_api_server_refuses_no_kind_and_two_kinds() -> None:
    made = choice_of(MappingProxyType({"files": FilesHalf()}))

    (rule,) = made.model_json_schema()["x-kubernetes-validations"]

    assert rule == {
        "rule": "[has(self.files), has(self.custom)].filter(x, x).size() == 1",
        "message": "set exactly one of: files, custom",
    }


def test_a_half_refuses_no_change_and_needs_no_texts_by_default() -> None:
    half = FilesHalf()

    assert half.texts(FilesSpec(folder="/data")) == ()
    half.check_change(Source, Source, field="spec.source.files")  # type: ignore[arg-type]


def test_a_source_of_another_connector_keeps_its_config_until_the_connector_reads_it() -> None:
    chosen = BOTH.model_validate({"custom": {"connector": "folders", "config": FILES}})

    assert (chosen.kind, chosen.field) == ("folders", "spec.source.custom.config")
    assert chosen.config(FilesHalf()) == FilesSpec(folder="/data")


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({}, r"spec\.source\.custom\.config\.folder: Field required"),
        ({"folder": 3}, r"config\.folder: Input should be a valid string"),
        ({"folder": "/d", "x": 1}, r"config\.x: unknown field \(there are: folder, maxDepth\)"),
        ({"folder": "/d", "depth": 1}, r"config\.depth: unknown field; did you mean maxDepth\?"),
        ({"folder": "/d", "folde": 1}, r"config\.folde: unknown field; did you mean folder\?"),
        ({"folde": "/d"}, r"config\.folde: unknown field; did you mean folder\? \(and 1 more\)"),
    ],
)
def test_the_connector_s_model_refuses_a_config_with_its_own_words(
    config: dict[str, Any], says: str
) -> None:
    chosen = BOTH.model_validate({"custom": {"connector": "folders", "config": config}})

    with pytest.raises(InvalidSpecError, match=says):
        chosen.config(FilesHalf())


def test_a_config_is_kept_by_the_api_server_whatever_is_in_it() -> None:
    custom = structural_schema(BOTH)["properties"]["custom"]

    assert custom["required"] == ["connector"]
    assert custom["properties"]["config"]["x-kubernetes-preserve-unknown-fields"] is True


def test_a_branch_of_its_own_is_the_same_as_a_custom_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For a CRD that was made by ``balanced-source crd --with folders``."""
    others = Connectors([Registration(kind="folders", reference="a:b", package="p")])
    monkeypatch.setattr(choice_module, "installed", lambda: others)

    assert BOTH.model_validate({"folders": FILES}) == BOTH.model_validate(
        {"custom": {"connector": "folders", "config": FILES}}
    )
    with pytest.raises(ValidationError, match="set exactly one of: files, kafka, custom"):
        BOTH.model_validate({"folders": FILES, "files": FILES})


def test_an_installed_connector_changes_the_crd_only_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By ``balanced-source crd --with folders``."""
    others = Connectors([Registration(kind="folders", reference="a:b", package="p")])
    monkeypatch.setattr(choice_module, "installed", lambda: others)
    monkeypatch.setattr(crd_module, "half_of", lambda _: FilesHalf())

    def branches(*connectors: str) -> dict[str, Any]:
        (version,) = crd_module.custom_resource_definition(connectors)["spec"]["versions"]
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        found: dict[str, Any] = spec["properties"]["source"]["properties"]
        return found

    assert branches().keys() | {"folders"} == branches("folders").keys()
    assert "folders" not in branches()
    assert branches("folders")["folders"]["properties"].keys() == {"folder", "maxDepth"}


def test_an_error_about_the_connector_points_to_its_name() -> None:
    raw = make_spec().model_dump(by_alias=True, mode="json", exclude_none=True)
    spec = {**raw, "source": {"custom": {"connector": "foldres"}}}

    (found,) = check_spec(spec, lambda _: {})

    assert found.path == ("spec", "source", "custom", "connector")
    assert "no connector of kind 'foldres'" in found.message


def test_an_error_about_the_connector_of_a_part_points_to_its_name() -> None:
    texts = {"paths": ["s3://history/orders"], "format": "Text"}
    raw = make_spec().model_dump(by_alias=True, mode="json", exclude_none=True)
    parts = [
        {"custom": {"connector": "files", "config": texts}},
        {"custom": {"connector": "foldres"}},
        {"kafka": raw["source"]["kafka"]},
    ]

    (found,) = check_spec({**raw, "source": {"hybrid": parts}}, lambda _: {})

    assert found.path == ("spec", "source", "hybrid", 1, "custom", "connector")
    assert "no connector of kind 'foldres'" in found.message


def test_every_mistake_in_the_config_of_a_connector_is_found() -> None:
    raw = make_spec().model_dump(by_alias=True, mode="json", exclude_none=True)
    config = {"path": ["s3://history/orders"], "formt": "Text"}
    spec = {**raw, "source": {"custom": {"connector": "files", "config": config}}}

    found = {finding.path[4]: finding.message for finding in check_spec(spec, lambda _: {})}

    assert found["path"] == "unknown field; did you mean paths?"
    assert found["formt"] == "unknown field; did you mean format?"
    assert found.keys() == {"path", "formt", "paths", "format"}
