"""Which applications may restart beside a second one."""

from typing import Any

import pytest

from balanced_source.errors import InvalidSpecError
from balanced_source.sinks import SHARED_FORMATS
from balanced_source_operator.controller.translate import to_source
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.spark_application import application_hash
from balanced_source_operator.spec import BalancedSourceSpec, parse_spec
from support.builders import spec_json

KAFKA = {"format": "kafka", "options": {"topic": "clean"}}


def spec(strategy: str = "BlueGreen", *, pipeline: Any = None, **application: Any) -> Any:
    raw = spec_json()
    made = {**raw["application"]["pipeline"], "sink": KAFKA, **(pipeline or {})}
    changes = {"pipeline": made, "restart": {"strategy": strategy}, **application}
    return {**raw, "application": {**raw["application"], **changes}}


def parsed(**changes: Any) -> BalancedSourceSpec:
    return parse_spec(spec(**changes))


@pytest.mark.parametrize("sink", [*sorted(SHARED_FORMATS), "Delta"])
def test_it_needs_a_sink_that_two_queries_may_write_to(sink: str) -> None:
    assert parsed(pipeline={"sink": {"format": sink}}).application.is_blue_green


@pytest.mark.parametrize(
    "changes",
    [
        {"pipeline": {"sink": {"format": "parquet"}}},
        {"pipeline": {"alignment": {"maxDrift": "1m"}}},
        {"pipeline": {"trigger": {"availableNow": True}}},
        {"main_application_file": "local:///app.py"},
    ],
    ids=["files", "aligned", "ends", "own program"],
)
def test_what_two_applications_cannot_run_is_refused(changes: dict[str, Any]) -> None:
    renamed = {
        "mainApplicationFile" if key == "main_application_file" else key: value
        for key, value in changes.items()
    }
    assert not parse_spec(spec("Recreate", **renamed)).application.is_blue_green
    with pytest.raises(InvalidSpecError, match=r"two queries may run.*Use Recreate"):
        parse_spec(spec(**renamed))


def test_several_hosts_need_no_strategy() -> None:
    with pytest.raises(InvalidSpecError, match="several hosts restart in turn"):
        parsed(hosts={"count": 2})


def test_sources_that_one_application_reads_are_refused() -> None:
    files = {"files": {"paths": ["/data/*"], "format": "Text"}}
    with pytest.raises(InvalidSpecError, match="one application reads: use Recreate") as refused:
        to_source(parse_spec({**spec(), "source": files}), {})
    assert refused.value.field == "spec.application.restart.strategy"


def test_a_change_of_the_strategy_restarts_nothing() -> None:
    source = Identity(namespace="shop", name="orders", uid="u-1")
    one, two = (parsed(strategy=name).application for name in ("Recreate", "BlueGreen"))

    assert application_hash(source, one, conf={}) == application_hash(source, two, conf={})
