"""From the spec to the source; what CEL cannot check is refused with the field's path."""

from typing import Any

import pytest

from balanced_source.api import RebalanceMode, RebalancePolicy
from balanced_source.assigners import HashAssigner, LoadAwareAssigner, RoundRobinAssigner
from balanced_source.connectors.kafka import EARLIEST, LATEST, PartitionSet, TopicList, TopicPattern
from balanced_source.errors import InvalidSpecError
from balanced_source_operator.controller.translate import assigner_warning, check_change, to_source
from balanced_source_operator.spec import parse_spec
from support.builders import make_spec, secrets_of, spec_json
from support.numbers_source import NumbersSource


def kafka(**changes: Any) -> dict[str, Any]:
    return {"kafka": {**spec_json()["source"]["kafka"], **changes}}


def cluster(name: str = "main", **changes: Any) -> dict[str, Any]:
    return {"name": name, "bootstrapServers": "b:1", **changes}


def test_defaults_are_round_robin_earliest_and_five_minutes() -> None:
    source = to_source(make_spec())

    assert source.assigner == RoundRobinAssigner()
    assert source.starting_offsets == EARLIEST
    assert source.discovery_interval == 300


@pytest.mark.parametrize(
    ("subscription", "want"),
    [
        ({"topics": ["a", "b", "a"]}, TopicList(("a", "b"))),
        ({"topicPattern": "ord.*"}, TopicPattern("ord.*")),
        ({"topicPattern": "ord.*", "excludePattern": ".*-dlq"}, TopicPattern("ord.*", ".*-dlq")),
        (
            {"partitions": [{"topic": "a", "partitions": [0, 2]}]},
            PartitionSet(frozenset({("a", 0), ("a", 2)})),
        ),
    ],
)
def test_each_kind_of_subscription(subscription: dict[str, Any], want: Any) -> None:
    assert to_source(make_spec(source=kafka(subscription=subscription))).subscriber == want


def test_the_other_choices_are_taken_over() -> None:
    spec = make_spec(
        assignment={"strategy": "Hash"},
        source=kafka(startingOffsets={"type": "Latest"}, discovery={"interval": "0"}),
    )

    source = to_source(spec)

    assert (source.assigner, source.starting_offsets, source.discovery_interval) == (
        HashAssigner(),
        LATEST,
        None,
    )


def test_secrets_are_named_never_read() -> None:
    clusters = [
        cluster("a", propertiesFrom=[{"secretRef": {"name": "x"}}, {"secretRef": {"name": "y"}}]),
        cluster("b", propertiesFrom=[{"secretRef": {"name": "x"}}]),
    ]
    spec = make_spec(source=kafka(clusters=clusters))

    source = to_source(spec)
    assert secrets_of(source) == ("x", "y")
    assert source.clusters[0].secrets == ("x", "y")


@pytest.mark.parametrize(
    ("source", "field", "says"),
    [
        pytest.param(
            kafka(clusters=[cluster(), cluster()]), "clusters[1].name", "two clusters", id="twice"
        ),
        pytest.param(
            kafka(clusters=[cluster(properties={"group.id": "x"})]),
            "clusters[0].properties",
            "group.id",
            id="reserved",
        ),
        pytest.param(
            kafka(clusters=[cluster(properties={"sasl.password": "x"})]),
            "properties",
            "propertiesFrom",
            id="secret",
        ),
        pytest.param(
            kafka(subscription={"topicPattern": "("}), "topicPattern", "( without )", id="pattern"
        ),
        pytest.param(kafka(subscription={}), "subscription", "exactly one", id="none"),
    ],
)
def test_invalid_values_are_rejected_with_their_path(
    source: dict[str, Any], field: str, says: str
) -> None:
    with pytest.raises(InvalidSpecError) as caught:
        to_source(make_spec(source=source))

    assert field in caught.value.field
    assert says in str(caught.value)


def test_a_spec_that_no_model_accepts_names_the_field() -> None:
    with pytest.raises(InvalidSpecError, match=r"spec\.parallelism"):
        parse_spec(spec_json(parallelism=0))


def test_rebalancing_modes() -> None:
    source = to_source(
        make_spec(
            assignment={
                "strategy": "LoadAware",
                "rebalance": {
                    "mode": "Drift",
                    "maxImbalance": 1.5,
                    "minInterval": "2m",
                    "maxMoves": 7,
                },
            }
        )
    )

    assert source.assigner == LoadAwareAssigner()
    assert source.rebalance_policy == RebalancePolicy(
        mode=RebalanceMode.DRIFT, max_imbalance=1.5, min_interval=120.0, max_moves=7
    )
    assert source.wants_loads


@pytest.mark.parametrize(
    ("assignment", "field"),
    [
        ({"strategy": "Hash", "rebalance": {"mode": "Drift"}}, "spec.assignment.rebalance.mode"),
        (
            {"rebalance": {"mode": "Drift", "minInterval": "29s"}},
            "spec.assignment.rebalance.minInterval: at least 30s",
        ),
    ],
)
def test_rebalancing_that_cannot_be_is_refused(assignment: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidSpecError, match=field):
        to_source(make_spec(assignment=assignment))


@pytest.mark.parametrize(
    "assignment",
    [
        {"strategy": "Hash", "rebalance": {"mode": "OnRescale"}},
        {"rebalance": {"mode": "Drift", "minInterval": "30s"}},
    ],
)
def test_rebalancing_at_the_limits_is_accepted(assignment: dict[str, Any]) -> None:
    policy = to_source(make_spec(assignment=assignment)).rebalance_policy

    assert policy.mode.value == assignment["rebalance"]["mode"]


def test_the_kind_of_a_source_is_fixed() -> None:
    """Its splits and positions mean nothing to another connector."""
    source = to_source(make_spec())

    with pytest.raises(
        InvalidSpecError, match="kind of a source cannot be changed from '' to 'kafka'"
    ):
        check_change(NumbersSource(()), source)


def test_a_source_without_an_assigner_has_no_warning_of_one() -> None:
    assert assigner_warning(NumbersSource(()), 3) is None
