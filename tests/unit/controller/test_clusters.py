"""Clusters: from the spec, or from a ConfigMap that someone else keeps."""

from typing import Any

import pytest
import yaml

from balanced_source.assigners import PerScopeAssigner
from balanced_source.connectors.kafka import EARLIEST, LATEST, TopicList
from balanced_source.errors import InvalidSpecError
from balanced_source_operator.controller.translate import check_change, to_source
from support.builders import make_spec, source_of

METADATA: dict[str, Any] = {
    "clusters": [
        {"name": "east", "bootstrapServers": "east:1", "startingOffsets": {"type": "Latest"}},
        {
            "name": "west",
            "bootstrapServers": "west:1",
            "propertiesFrom": [{"secretRef": {"name": "west"}}],
        },
        {"name": "old", "bootstrapServers": "old:1", "active": False},
    ],
    "streams": {
        "orders": {"east": ["orders"], "west": ["orders-v2"]},
        "clicks": {"west": ["clicks"], "old": ["clicks"]},
    },
}


BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
)
"""Nine lines that are 43 million values."""


def spec(subscription: dict[str, Any], **changes: Any) -> Any:
    reference = {"configMapRef": {"name": "streams", "key": "clusters.yaml"}}
    return make_spec(
        source={"kafka": {"clustersFrom": reference, "subscription": subscription, **changes}}
    )


def to_clusters(subscription: dict[str, Any], metadata: Any = METADATA) -> dict[str, Any]:
    text = metadata if metadata is None or isinstance(metadata, str) else yaml.safe_dump(metadata)
    return {cluster.name: cluster for cluster in source_of(spec(subscription), text).clusters}


def test_a_stream_is_topics_on_clusters() -> None:
    found = to_clusters({"streams": ["orders"]})

    assert {name: cluster.subscriber for name, cluster in found.items()} == {
        "east": TopicList(("orders",)),
        "west": TopicList(("orders-v2",)),
    }
    assert (found["east"].starting_offsets, found["west"].starting_offsets) == (LATEST, None)
    assert found["west"].secrets == ("west",)


def test_streams_on_one_cluster_are_read_together_and_inactive_clusters_are_not() -> None:
    found = to_clusters({"streamPattern": ".*"})

    assert sorted(found) == ["east", "west"]
    inactive = source_of(spec({"streamPattern": ".*"}), yaml.safe_dump(METADATA)).inactive
    assert [cluster.name for cluster in inactive] == ["old"]
    assert found["west"].subscriber == TopicList(("clicks", "orders-v2"))


def test_a_cluster_without_a_chosen_stream_does_not_belong_to_the_source() -> None:
    """It is neither read nor kept for a return."""
    found = source_of(spec({"streams": ["clicks"]}), yaml.safe_dump(METADATA))

    assert [cluster.name for cluster in found.clusters] == ["west"]
    assert [cluster.name for cluster in found.inactive] == ["old"]
    other = source_of(spec({"streams": ["orders"]}), yaml.safe_dump(METADATA))
    assert other.inactive == ()


@pytest.mark.scenario("D7")
def test_the_same_metadata_in_another_order_is_the_same_source() -> None:
    """Nothing happens then: the coordinator compares sources as values."""
    other = yaml.safe_dump(
        {**METADATA, "streams": dict(reversed(METADATA["streams"].items()))}, sort_keys=False
    )

    chosen = spec({"streams": ["clicks", "orders"]})

    assert source_of(chosen, yaml.safe_dump(METADATA)) == source_of(chosen, other)


@pytest.mark.scenario("D3", "D4")
@pytest.mark.parametrize(
    ("subscription", "metadata", "says"),
    [
        ({"streams": ["orders"]}, None, "there is no such ConfigMap"),
        ({"streams": ["orders"]}, "{", "not valid YAML"),
        ({"streams": ["orders"]}, "\x1f", "not valid YAML"),
        ({"streams": ["orders"]}, "[" * 100 + "]" * 100, "more than 64 levels"),
        ({"streams": ["orders"]}, BOMB, "more than 200000 values"),
        ({"streams": ["orders"]}, {"clusters": [{"name": "x"}]}, "bootstrapServers"),
        ({"streams": ["nothing"]}, METADATA, "no stream nothing"),
        ({"streams": [f"s{n}" for n in range(9, -1, -1)]}, METADATA, "no stream s0"),
        (
            {"streams": ["orders"]},
            {**METADATA, "clusters": METADATA["clusters"][:1]},
            "no cluster west",
        ),
        (
            {"streams": ["orders"]},
            {**METADATA, "clusters": [*METADATA["clusters"], METADATA["clusters"][0]]},
            "two clusters called east",
        ),
        ({"streamPattern": "("}, METADATA, "without )"),
    ],
)
def test_metadata_that_cannot_be_used_is_told(
    subscription: dict[str, Any], metadata: Any, says: str
) -> None:
    """Upstream fails the job.

    Here a condition says it, and what was read last stays in effect (runtime tests).
    """
    with pytest.raises(InvalidSpecError, match=says.replace("(", r"\(").replace(")", r"\)")):
        to_clusters(subscription, metadata)


def test_settings_of_a_cluster_win_over_those_of_the_source() -> None:
    clusters = [
        {"name": "a", "bootstrapServers": "a:1", "startingOffsets": {"type": "Latest"}},
        {"name": "b", "bootstrapServers": "b:1", "stoppingOffsets": {"type": "Latest"}},
        {"name": "c", "bootstrapServers": "c:1", "active": False},
    ]
    source = to_source(
        make_spec(source={"kafka": {"clusters": clusters, "subscription": {"topics": ["t"]}}})
    )

    assert source.scopes() == ("a", "b")
    assert source.reader_settings()["kafka"]["clusters"].keys() == {"a", "b", "c"}, (
        "what was planned before is read"
    )
    first, later = (
        source.initialize("a", [("a", "t", 0)], is_first=is_first) for is_first in (True, False)
    )
    assert (first.starting_offsets, first.stopping_offsets) == (LATEST, None)
    assert later.starting_offsets == EARLIEST
    assert source.initialize("b", [], is_first=True).stopping_offsets == LATEST


@pytest.mark.parametrize(
    ("before", "after", "is_refused"),
    [
        ({"a": 5}, {"a": 5}, False),
        ({"a": 5}, {"a": 6}, True),
        ({"a": 5}, {"a": None}, True),
        ({"a": None}, {"a": 5}, True),
        ({"a": 5}, {"a": 5, "b": 6}, False),
        ({"a": 5, "b": 6}, {"a": 5}, False),
    ],
)
def test_the_end_of_a_cluster_is_fixed_wherever_it_is_written(
    before: dict[str, int | None], after: dict[str, int | None], is_refused: bool
) -> None:
    """What the API server refuses in the spec is refused in metadata too.

    Clusters with an end may come and go.
    """

    def source(ends: dict[str, int | None]) -> Any:
        stops = {
            n: {"stoppingOffsets": {"type": "Timestamp", "timestamp": end}}
            for n, end in ends.items()
            if end
        }
        clusters = [
            {"name": name, "bootstrapServers": "b:1", **stops.get(name, {})} for name in ends
        ]
        metadata = {"clusters": clusters, "streams": {"orders": {name: ["t"] for name in ends}}}
        return source_of(spec({"streams": ["orders"]}), yaml.safe_dump(metadata))

    if not is_refused:
        check_change(source(before), source(after))
        return
    with pytest.raises(InvalidSpecError, match="cluster a: stoppingOffsets: cannot be changed"):
        check_change(source(before), source(after))


@pytest.mark.scenario("D27")
def test_the_enumerator_mode_is_a_choice_of_two() -> None:
    """Unlike upstream's string it is checked by the API server; the values are in the error."""
    per_cluster = make_spec(source={"kafka": {**_kafka(), "enumeratorMode": "PerCluster"}})
    assert isinstance(to_source(per_cluster).assigner, PerScopeAssigner)

    with pytest.raises(InvalidSpecError, match="'Global' or 'PerCluster'"):
        make_spec(source={"kafka": {**_kafka(), "enumeratorMode": "both"}})


@pytest.mark.scenario("D13")
def test_positions_of_removed_splits_are_kept_for_a_week_by_default() -> None:
    """Upstream's default is 0, which loses the positions of a cluster that returns.

    A negative span is refused.
    """

    def retention(**changes: Any) -> float:
        return to_source(make_spec(source={"kafka": {**_kafka(), **changes}})).retention

    assert (retention(), retention(removedClusterRetention="0")) == (7 * 86400.0, 0.0)
    with pytest.raises(InvalidSpecError, match="removedClusterRetention"):
        retention(removedClusterRetention="-1s")


def _kafka() -> dict[str, Any]:
    return {
        "clusters": [{"name": "a", "bootstrapServers": "a:1"}],
        "subscription": {"topics": ["t"]},
    }
