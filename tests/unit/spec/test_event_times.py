"""Alignment in event time is refused where a source has no event times, before anything runs."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from balanced_source.api import Source
from balanced_source.errors import InvalidSpecError
from balanced_source.host.alignment import unaligned
from balanced_source_adapters.registrations import BUILT_IN
from balanced_source_operator.controller.translate import to_recalled_source, to_source
from balanced_source_operator.spec import parse_spec
from balanced_source_operator.validation.manifest import check_manifest
from balanced_source_spark.contract.hooks import PlannerHooks
from balanced_source_spark.contract.readers import ReaderHooks
from balanced_source_spark.files.hooks import FilesHooks
from balanced_source_spark.kafka.hooks import KafkaHooks
from balanced_source_spark.kinesis.half import ShardHooks
from support.builders import spec_json

EXAMPLES = Path(__file__).parents[3] / "examples"
PLACE = ("spec", "application", "pipeline", "alignment")
HOOKS: dict[str, type[PlannerHooks]] = {
    "files": FilesHooks,
    "kafka": KafkaHooks,
    "kinesis": ShardHooks,
}


def manifest(kind: str) -> dict[str, Any]:
    name = {"kafka": "orders"}.get(kind, kind)
    documents = yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))
    found: dict[str, Any] = next(d for d in documents if d["kind"] == "BalancedSource")
    return found


def aligned(kind: str) -> dict[str, Any]:
    found = manifest(kind)
    found["spec"]["application"]["pipeline"]["alignment"] = {"maxDrift": "5m"}
    return found


@pytest.mark.parametrize("kind", ["files", "hybrid"])
def test_a_source_without_event_times_cannot_be_aligned(kind: str) -> None:
    with pytest.raises(InvalidSpecError) as caught:
        to_source(parse_spec(aligned(kind)["spec"]))

    assert str(caught.value) == f"{'.'.join(PLACE)}: {unaligned(kind)}"
    assert caught.value.field == ".".join(PLACE)
    assert [(f.path, f.message) for f in check_manifest(aligned(kind), lambda _: {})] == [
        (PLACE, unaligned(kind))
    ]
    assert check_manifest(manifest(kind), lambda _: {}) == []


@pytest.mark.parametrize("kind", ["kafka", "kinesis"])
def test_a_source_with_event_times_can_be_aligned(kind: str) -> None:
    assert check_manifest(aligned(kind), lambda _: {}) == []


def test_a_source_that_runs_already_is_recalled_all_the_same() -> None:
    """A user who slows it down need not correct the rest first."""
    spec = parse_spec(aligned("files")["spec"])
    assert to_recalled_source(spec, {}, {}).kind == "files"


@pytest.mark.parametrize("kind", sorted(HOOKS))
def test_validation_says_what_the_driver_would_say(kind: str) -> None:
    source = to_source(parse_spec(manifest(kind)["spec"]))
    tells = HOOKS[kind].tells_event_times
    assert isinstance(tells, property)
    assert source.has_event_times == tells.__get__(object.__new__(HOOKS[kind]))
    assert HOOKS.keys() | {"hybrid"} == BUILT_IN.keys()


def test_a_plug_in_that_says_nothing_leaves_it_to_the_driver() -> None:
    default: Any = Source.has_event_times
    assert default.fget(object()) is True
    assert not ReaderHooks().tells_event_times


def test_a_spec_without_a_pipeline_has_no_alignment() -> None:
    own = spec_json(application={"image": "i", "sparkVersion": "4.2.0", "mainApplicationFile": "a"})
    assert to_source(parse_spec(own)).kind == "kafka"
