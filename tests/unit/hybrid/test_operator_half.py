"""``spec.source.hybrid``: from the spec to the source, and what is refused."""

import json
from typing import Any

import pytest

from balanced_source.api import Boundedness, Measure
from balanced_source.connectors.hybrid import HybridSource
from balanced_source.errors import ConnectorError, InvalidSpecError
from balanced_source_adapters.connectors import installed
from balanced_source_operator.contract import choice
from balanced_source_operator.contract.half import NO_LOSSES, TextReference, half_of
from balanced_source_operator.controller.translate import (
    check_change,
    check_fixed,
    fixed_values,
    reader_options,
    texts_of,
    to_recalled_source,
    to_source,
)
from balanced_source_operator.files.half import FilesOperatorHalf
from balanced_source_operator.hybrid import half as hybrid_half
from balanced_source_operator.local import read_spec
from balanced_source_operator.spec import BalancedSourceSpec, parse_spec
from balanced_source_operator.spec.crd import custom_resource_definition
from balanced_source_operator.validation.manifest import check_spec
from support.builders import spec_json
from testbed.versions import CHECKOUT

FILES: dict[str, Any] = {"paths": ["/data/in"], "format": "Parquet", "schema": "key BINARY"}
KAFKA: dict[str, Any] = {
    "clusters": [{"name": "main", "bootstrapServers": "b:1"}],
    "subscription": {"topics": ["orders"]},
}
AFTER: dict[str, Any] = {"offsets": {}}


def parts(
    files: dict[str, Any] | None = None,
    kafka: dict[str, Any] | None = None,
    after: dict[str, Any] | None = AFTER,
) -> list[dict[str, Any]]:
    start = {"startAfter": after} if after is not None else {}
    return [{"files": {**FILES, **(files or {})}}, {"kafka": {**KAFKA, **(kafka or {})}, **start}]


def spec(given: list[dict[str, Any]] | None = None, **more: Any) -> BalancedSourceSpec:
    return parse_spec(spec_json(source={"hybrid": parts() if given is None else given}, **more))


def hybrid(given: list[dict[str, Any]] | None = None) -> HybridSource:
    made = to_source(spec(given))
    assert isinstance(made, HybridSource)
    return made


def refusal(given: list[dict[str, Any]], **more: Any) -> InvalidSpecError:
    with pytest.raises(InvalidSpecError) as caught:
        to_source(spec(given, **more))
    return caught.value


def test_parts_are_read_in_their_order() -> None:
    source = hybrid()

    assert source.names == ("files", "kafka")
    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    assert source.parts[1].start == Measure(offsets=("topic", "partition", "offset"))
    assert source.parts[0].source == half_of("files").to_source(
        half_of("files").spec.model_validate(FILES),
        None,
        {},
        field="",  # type: ignore[arg-type]
    ).measuring(source.parts[1].start, field="")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("after", "measure"),
    [
        (None, None),
        ({"time": "at"}, Measure(time="at")),
        ({"offsets": {"topic": "t"}}, Measure(offsets=("t", "partition", "offset"))),
        (
            {"offsets": {"topicIds": {"orders": "e5KQvvYqT-e_EfwofZMpPA"}}},
            Measure(
                offsets=("topic", "partition", "offset"),
                identities=(("orders", "e5KQvvYqT-e_EfwofZMpPA"),),
            ),
        ),
    ],
)
def test_a_part_starts_behind_what_was_read(
    after: dict[str, Any] | None, measure: Measure | None
) -> None:
    assert hybrid(parts(after=after)).parts[1].start == measure


def test_the_driver_gets_the_options_of_each_part_without_columns_of_its_own() -> None:
    (files, kafka) = json.loads(reader_options(spec())["parts"])

    assert (files["connector"], kafka["connector"]) == ("files", "kafka")
    assert (files["fileFormat"], files["schema"]) == ("parquet", "key BINARY")
    assert files["metadataColumns"] == "false"


def test_a_part_has_metadata_columns_where_the_user_wants_them() -> None:
    (files, _) = json.loads(reader_options(spec(parts({"metadataColumns": True})))["parts"])

    assert files["metadataColumns"] == "true"
    assert "metadataColumns" not in reader_options(parse_spec(spec_json(source={"files": FILES})))


def test_texts_and_secrets_of_all_parts_are_found() -> None:
    given = [
        {
            "kafka": {
                "clustersFrom": {"configMapRef": {"name": "places", "key": "c.yaml"}},
                "subscription": {"streams": ["s"]},
                "stoppingOffsets": {"type": "Latest"},
            }
        },
        {"kafka": {**KAFKA, "clusters": [_cluster_with_secret()]}},
    ]
    made = spec(given)
    metadata = json.dumps(
        {
            "clusters": [{"name": "far", "bootstrapServers": "b:1"}],
            "streams": {"s": {"far": ["t"]}},
        }
    )

    assert texts_of(made) == (TextReference("places", "c.yaml"),)
    source = to_source(made, {TextReference("places", "c.yaml"): metadata})
    assert installed().of(source).secrets(source) == ("password",)


def _cluster_with_secret() -> dict[str, Any]:
    reference = {"secretRef": {"name": "password"}}
    return {"name": "main", "bootstrapServers": "b:1", "propertiesFrom": [reference]}


@pytest.mark.parametrize(
    ("given", "field", "says"),
    [
        (parts({"discoveryInterval": "5s"}), "spec.source.hybrid[0]", "never ends"),
        (
            parts(kafka={"discovery": {"interval": "500ms"}}),
            "spec.source.hybrid[1].kafka.discovery.interval",
            "1s",
        ),
        (
            [{"kinesis": {"streams": ["s"]}}, *parts()[1:]],
            "spec.source.hybrid[0]",
            "cannot be a part",
        ),
        ([{**parts()[0], "startAfter": AFTER}, *parts()[1:]], "spec.source.hybrid[0]", "first"),
        (parts({"format": "Json"}), "spec.source.hybrid", "Parquet"),
        (
            [{"custom": {"connector": "files", "config": {"path": "x"}}}, *parts()[1:]],
            "spec.source.hybrid[0].custom.config",
            "unknown field; did you mean paths?",
        ),
    ],
)
@pytest.mark.scenario("Q6")
def test_parts_that_cannot_be_combined_are_refused_with_their_place(
    given: list[dict[str, Any]], field: str, says: str
) -> None:
    """Under the operator the path of the part is named."""
    error = refusal(given)

    assert says in str(error)
    assert str(error.field).startswith(field)


UNKNOWN: dict[str, Any] = {"custom": {"connector": "tapes", "config": {}}}


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.scenario("Q6")
def test_a_part_whose_connector_is_not_installed_is_named(number: int) -> None:
    """By the operator and by ``validate``."""
    given = parts(after=None)
    given[number] = UNKNOWN

    with pytest.raises(ConnectorError) as caught:
        to_source(spec(given))

    field = f"spec.source.hybrid[{number}].custom.connector"
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: no connector of kind 'tapes' is installed")
    [finding] = check_spec(spec_json(source={"hybrid": given}), lambda _: {})
    assert finding.path == ("spec", "source", "hybrid", number, "custom", "connector")
    assert finding.message.startswith("no connector of kind")


def _take_over() -> None:
    """All that the operator does with a new spec."""
    texts_of(spec())
    made = hybrid()
    reader_options(spec())
    check_change(made, hybrid())
    fixed_values(made)


class FailingHalf(FilesOperatorHalf):
    """Of files, with a mistake in the method that a test names."""

    def __init__(self, method: str) -> None:
        setattr(self, method, self._fail)

    def _fail(self, *_: Any, **__: Any) -> Any:
        raise KeyError("torn")


@pytest.mark.parametrize("method", ["texts", "to_source", "part_options", "check_change", "fixed"])
@pytest.mark.scenario("Q6")
def test_a_mistake_of_the_connector_of_a_part_names_connector_and_part(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Whatever the operator asks of it."""

    def of(kind: str) -> Any:
        return FailingHalf(method) if kind == "files" else half_of(kind)

    monkeypatch.setattr(choice, "half_of", of)
    monkeypatch.setattr(hybrid_half, "half_of", of)

    with pytest.raises(ConnectorError, match=r"connector 'files' failed on .*KeyError") as caught:
        _take_over()

    assert caught.value.field == "spec.source.hybrid[0].files"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (parts()[:1], "at least 2"),
        ([*parts(), *parts(), *parts()], "at most 4"),
        (parts(after={}), "either time or offsets"),
        (parts(after={"time": "at", "offsets": {}}), "either time or offsets"),
        ([{**parts()[0], "kafka": KAFKA}, *parts()[1:]], "set exactly one of"),
        ([{"hybrid": parts()}, *parts()[1:]], "cannot be a hybrid source itself"),
    ],
)
def test_the_model_rejects_what_the_api_server_rejects(
    given: list[dict[str, Any]], says: str
) -> None:
    """In local mode there is no API server."""
    with pytest.raises(InvalidSpecError, match=says):
        spec(given)


def test_several_hosts_are_refused() -> None:
    application = {**spec_json()["application"], "hosts": {"count": 2}}

    assert refusal(parts(), application=application).field == "spec.application.hosts"


@pytest.mark.parametrize(
    ("after", "field", "says"),
    [
        ([*parts()[1:], *parts()[1:]], "spec.source.hybrid", "kinds and order"),
        (parts(after={"time": "at"}), "spec.source.hybrid[1].startAfter", "cannot be changed"),
        (
            parts(after={"offsets": {"offset": "o"}}),
            "spec.source.hybrid[1].startAfter",
            "cannot be changed",
        ),
        (parts({"paths": ["/other"]}), "spec.source.hybrid[0].files.paths", "cannot be changed"),
        (
            parts(kafka={"stoppingOffsets": {"type": "Latest"}}),
            "spec.source.hybrid[1].kafka.stoppingOffsets",
            "cannot be changed",
        ),
    ],
)
@pytest.mark.scenario("Q7")
def test_a_change_that_would_lose_the_place_is_refused(
    after: list[dict[str, Any]], field: str, says: str
) -> None:
    """At once, and also when it was made while no operator ran."""
    if after[0].get("kafka"):
        after = [{"kafka": {**KAFKA, "stoppingOffsets": {"type": "Latest"}}}, {"kafka": KAFKA}]
    changed = hybrid(after)

    with pytest.raises(InvalidSpecError, match=says) as caught:
        check_change(hybrid(), changed)
    assert caught.value.field == field

    with pytest.raises(InvalidSpecError, match="changed while the operator was down"):
        check_fixed(fixed_values(hybrid()), changed)


def test_other_settings_of_parts_may_change() -> None:
    changed = hybrid(parts({"splitBytes": 65536}, {"limits": {"maxOffsetsPerTrigger": 5}}))

    check_change(hybrid(), changed)
    check_fixed(fixed_values(hybrid()), changed)


def test_ids_of_topics_may_be_added_corrected_and_removed() -> None:
    """They say of which topics the history is, and not what is measured of it."""
    ids: Any = [None, {"orders": "e5KQvvYqT-e_EfwofZMpPA"}, {"orders": "f5KQvvYqT-e_EfwofZMpPA"}]
    starts = [hybrid(parts(after={"offsets": {"topicIds": i} if i else {}})) for i in ids]

    for before in starts:
        for after in starts:
            check_change(before, after)
            check_fixed(fixed_values(before), after)


def test_a_restarted_operator_recalls_the_ends_of_each_part() -> None:
    stopping = parts(kafka={"stoppingOffsets": {"type": "Latest"}})
    fixed = fixed_values(hybrid(stopping))

    recalled = to_recalled_source(spec(stopping), {}, fixed)

    assert recalled == hybrid(stopping)


def test_a_loss_in_a_part_is_described_by_its_connector() -> None:
    losses = half_of("hybrid").losses({"skippedOffsets": 12})

    assert losses.records == 12
    assert "12 offsets deleted" in losses.problems[0].message


def test_losses_of_parts_of_several_kinds_are_put_together() -> None:
    half = half_of("hybrid")
    assert half.losses({}) == NO_LOSSES

    both = half.losses({"skippedOffsets": 12, "skippedBlocks": 3})
    assert both.records == 12
    assert {problem.reason for problem in both.problems} == {"OffsetsSkipped", "SplitsSkipped"}
    doubtful = half.losses({"uncountedOffsets": 300})
    assert doubtful.records is None, "unknown is not zero"
    assert [problem.reason for problem in doubtful.doubts] == ["OffsetsUncounted"]
    assert half.losses({"uncountedOffsets": 300, "skippedOffsets": 12}).records == 12


def test_a_cluster_that_a_part_leaves_out_is_named_by_its_connector() -> None:
    half, source = half_of("hybrid"), hybrid()

    assert half.left_out(source, ("kafka", "gone", "orders", 0)) == "cluster gone"
    assert half.left_out(source, ("files", "file:/data/a", 0)) == ""
    assert half.left_out(source, ("unknown", "gone", "orders", 0)) == ""


def test_no_rule_of_a_part_compares_with_a_previous_value() -> None:
    """The API server refuses such rules for items of a list without keys, and with them the CRD."""
    source = _properties(custom_resource_definition(), "spec", "source")
    items = source["hybrid"]["items"]

    assert "oldSelf" in json.dumps(source["kafka"])
    assert "oldSelf" in json.dumps(source["hybrid"]["x-kubernetes-validations"])
    assert "oldSelf" not in json.dumps(items)
    assert "set either clusters or clustersFrom" in json.dumps(items)


def _properties(crd: dict[str, Any], *path: str) -> dict[str, Any]:
    found = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    for name in path:
        found = found[name]["properties"]
    return dict(found)


@pytest.mark.parametrize("name", ["hybrid.yaml", "hybrid-laptop.yaml"])
def test_the_examples_are_valid(name: str) -> None:
    source = to_source(read_spec(CHECKOUT / "examples" / name))

    assert isinstance(source, HybridSource)
    assert source.names == ("files", "kafka")
