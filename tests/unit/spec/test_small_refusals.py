"""Small checks of what users write, each by itself."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic_core import PydanticCustomError

from balanced_source.connectors.files import FilesSource, Format
from balanced_source.errors import ContractViolationError, InvalidSpecError
from balanced_source_operator.contract import base, choice, yaml_text
from balanced_source_operator.contract.choice import built_in_halves
from balanced_source_operator.contract.half import OperatorHalf
from balanced_source_operator.files.half import FilesOperatorHalf, _files
from balanced_source_operator.hybrid import spec as hybrid_spec
from balanced_source_operator.hybrid.half import _checked, _hybrid
from balanced_source_operator.kafka.half import _kafka
from balanced_source_operator.resources.pod_templates import _trigger
from balanced_source_operator.spec import application as specs
from support.numbers_source import NumbersSource


def test_a_duration_is_at_most_ten_years() -> None:
    assert base._bounded("87600h") == "87600h"
    with pytest.raises(PydanticCustomError, match="at most ten years"):
        base._bounded("87601h")


def test_a_manifest_is_one_document() -> None:
    assert yaml_text.load("a: 1") == {"a": 1}
    assert yaml_text.load("") is None
    with pytest.raises(yaml_text.YamlError, match="expected one document, found 2"):
        yaml_text.load("a: 1\n---\nb: 2")


def test_keys_are_texts_as_in_json() -> None:
    assert yaml_text.load("{true: 1, false: 2, 3: 4, x: 5}") == {
        "true": 1,
        "false": 2,
        "3": 4,
        "x": 5,
    }


def test_a_connector_made_of_others_asks_for_all_but_itself() -> None:
    assert sorted(built_in_halves()) == ["files", "hybrid", "kafka", "kinesis"]
    found = built_in_halves(besides="hybrid")
    assert sorted(found) == ["files", "kafka", "kinesis"]
    assert all(isinstance(half, OperatorHalf) for half in found.values())


def test_a_connector_without_an_operator_half_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    known = SimpleNamespace(
        kinds=("embedded", "whole"),
        get=lambda kind: SimpleNamespace(operator="module:Half" if kind == "whole" else ""),
    )
    monkeypatch.setattr(choice, "built_in", lambda: known)
    monkeypatch.setattr(choice, "half_of", lambda kind, _: f"half of {kind}")
    assert choice.built_in_halves() == {"whole": "half of whole"}


def test_columns_are_limited_where_they_do_not_depend_on_the_spec() -> None:
    [rule] = built_in_halves()["kafka"].columns_rules("kafka")
    assert rule.startswith("!has(self.source.kafka) || !has(self.application.pipeline)")
    assert "self.application.pipeline.columns.all(c, c in ['" in rule
    assert built_in_halves()["files"].columns_rules("files") == ()


def test_a_half_gets_only_sources_of_its_kind() -> None:
    other = NumbersSource(())
    with pytest.raises(ContractViolationError, match="NumbersSource is not a file source"):
        _files(other)
    with pytest.raises(ContractViolationError, match="NumbersSource is not a hybrid source"):
        _hybrid(other)
    with pytest.raises(ContractViolationError, match="NumbersSource is not a Kafka source"):
        _kafka(other)


@pytest.mark.parametrize("made", [NumbersSource(()), None])
def test_the_half_of_a_part_makes_a_source_of_its_kind(made: object) -> None:
    with pytest.raises(TypeError, match="and a Source of kind 'kafka' was expected"):
        _checked("kafka", made)


def test_rules_for_fields_of_parts() -> None:
    assert hybrid_spec._both("a", "x") == (
        "has(self[i].a) == has(oldSelf[i].a) && (!has(self[i].a) || (x))"
    )
    assert hybrid_spec._equal("a", "b") == (
        "self[i].a == oldSelf[i].a && self[i].b == oldSelf[i].b"
    )


def test_a_trigger_without_an_interval_is_refused() -> None:
    with pytest.raises(InvalidSpecError, match="set either processingTime, or availableNow"):
        _trigger(specs.Trigger.model_construct(available_now=False, processing_time=None))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"paths": ("/other",)}, "spec.source.files.paths"),
        ({"kind_of_file": Format.TEXT}, "spec.source.files.format"),
        ({"discovery_interval": 60.0}, "spec.source.files.discoveryInterval"),
    ],
)
def test_what_is_fixed_of_a_file_source_is_refused_where_no_api_server_does(
    change: dict[str, Any], field: str
) -> None:
    before = FilesSource(paths=("/in",), kind_of_file=Format.PARQUET)
    half = FilesOperatorHalf()
    half.check_change(before, replace(before), field="spec.source.files")
    with pytest.raises(InvalidSpecError) as found:
        half.check_change(before, replace(before, **change), field="spec.source.files")
    assert found.value.field == field
