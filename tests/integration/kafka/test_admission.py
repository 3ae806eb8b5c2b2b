"""What the API server refuses before anything is stored.

CEL rules of the Kafka source, on a real one.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from support.builders import source_body
from testbed.control_plane import ControlPlane
from testbed.errors import CommandError
from testbed.versions import CHECKOUT


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(
        tmp_path_factory.mktemp("control-plane"), crds=[CHECKOUT / "crds"]
    ) as started:
        yield started


CLUSTERS = [{"name": "a", "bootstrapServers": "a:1"}]
TOPICS = {"topics": ["t"]}


def manifest(name: str = "orders", **kafka: Any) -> dict[str, Any]:
    body = source_body(
        name, source={"kafka": {"clusters": CLUSTERS, "subscription": TOPICS, **kafka}}
    )
    body["metadata"] = {"name": name, "namespace": "default"}
    kafka_spec = body["spec"]["source"]["kafka"]
    body["spec"]["source"]["kafka"] = {
        key: value for key, value in kafka_spec.items() if value is not None
    }
    return body


@pytest.mark.parametrize(
    "kafka",
    [
        {},
        {"startingOffsets": {"type": "Timestamp", "timestamps": {"t": {"0": 5}}, "reset": "None"}},
        {
            "startingOffsets": {
                "type": "Specific",
                "offsets": {"t": {"0": 5, "1": -2}},
                "unlisted": "Latest",
            }
        },
        {
            "startingOffsets": {
                "type": "Committed",
                "group": "g",
                "topics": [{"topic": "t", "type": "Latest"}],
            }
        },
        {
            "stoppingOffsets": {"type": "Latest"},
            "limits": {"minOffsetsPerTrigger": 5, "maxOffsetsPerTrigger": 5},
        },
        {"subscription": {"topicPattern": r"a\.(b|c)+[0-9]{2}", "excludePattern": ".*-dlq"}},
        {
            "clusters": None,
            "clustersFrom": {"configMapRef": {"name": "streams"}},
            "subscription": {"streamPattern": ".*"},
        },
        {"clusters": [{**CLUSTERS[0], "active": False, "startingOffsets": {"type": "Latest"}}]},
    ],
)
def test_valid_limits_are_accepted(control_plane: ControlPlane, kafka: dict[str, Any]) -> None:
    control_plane.apply(manifest(f"right-{abs(hash(str(kafka))) % 10**8}", **kafka))


@pytest.mark.scenario("I11")
@pytest.mark.parametrize(
    ("kafka", "says"),
    [
        ({"startingOffsets": {"type": "Timestamp"}}, "needs timestamp or timestamps"),
        (
            {"startingOffsets": {"type": "Earliest", "offsets": {"t": {"0": 1}}}},
            "only it takes offsets",
        ),
        ({"startingOffsets": {"type": "Committed"}}, "Committed needs a group"),
        ({"startingOffsets": {"type": "Latest", "reset": "Latest"}}, "take a reset"),
        ({"limits": {"minOffsetsPerTrigger": 6, "maxOffsetsPerTrigger": 5}}, "must not exceed"),
        ({"subscription": {"topics": ["t"], "topicPattern": "x"}}, "set exactly one of"),
        ({"subscription": {"topics": ["t"], "excludePattern": "x"}}, "needs topicPattern"),
        ({"subscription": {"topicPattern": "("}}, "topicPattern"),
        ({"subscription": {"streams": ["s"]}}, "need clustersFrom"),
        ({"clusters": None}, "either clusters or clustersFrom"),
        ({"enumeratorMode": "both"}, "PerCluster"),
        ({"clusters": [{**CLUSTERS[0], "properties": {"group.id": "x"}}]}, "group.id is reserved"),
    ],
)
def test_invalid_limits_are_rejected_with_a_sentence(
    control_plane: ControlPlane, kafka: dict[str, Any], says: str
) -> None:
    """A second kind of subscription is refused by naming all kinds.

    Upstream's error names the first one.
    """
    with pytest.raises(CommandError) as caught:
        control_plane.apply(manifest("wrong", **kafka))

    assert says in str(caught.value)


def test_an_end_cannot_be_added_taken_or_moved_later(control_plane: ControlPlane) -> None:
    control_plane.apply(manifest("endless"))
    control_plane.apply(manifest("bounded", stoppingOffsets={"type": "Latest"}))

    for name, stop in (
        ("endless", {"type": "Latest"}),
        ("bounded", None),
        ("bounded", {"type": "Timestamp", "timestamp": 5}),
    ):
        with pytest.raises(CommandError, match="cannot be changed"):
            control_plane.apply(manifest(name, stoppingOffsets=stop))
    control_plane.apply(manifest("bounded", stoppingOffsets={"type": "Latest"}, commitGroup="g"))


def test_the_end_of_one_cluster_cannot_be_changed_but_a_cluster_with_an_end_may_come_and_go(
    control_plane: ControlPlane,
) -> None:
    def apply(*ends: tuple[str, dict[str, Any] | None]) -> None:
        clusters = [
            {"name": name, "bootstrapServers": "b:1", **({"stoppingOffsets": stop} if stop else {})}
            for name, stop in ends
        ]
        control_plane.apply(manifest("several", clusters=clusters))

    specific = {"type": "Specific", "offsets": {"t": {"0": 5}}}
    apply(("a", None))
    apply(("a", None), ("b", specific))
    for change in ({"type": "Latest"}, {**specific, "offsets": {"t": {"0": 6}}}, None):
        with pytest.raises(CommandError, match="of a cluster cannot be changed"):
            apply(("a", None), ("b", change))
    apply(("b", specific), ("a", None))
    apply(("a", None))


def test_the_start_of_a_later_part_cannot_be_changed_but_ids_of_topics_may(
    control_plane: ControlPlane,
) -> None:
    kafka = {"clusters": CLUSTERS, "subscription": TOPICS}
    files = {"paths": ["/data/in"], "format": "Parquet", "schema": "key BINARY"}

    def apply(**after: Any) -> None:
        parts = [{"files": files}, {"kafka": kafka, "startAfter": after}]
        body = source_body("hybrid", source={"hybrid": parts})
        body["metadata"] = {"name": "hybrid", "namespace": "default"}
        control_plane.apply(body)

    apply(offsets={})
    for first in "ef":
        apply(offsets={"topicIds": {"t": f"{first}5KQvvYqT-e_EfwofZMpPA"}})
    for change in ({"offsets": {"offset": "o"}}, {"time": "at"}):
        with pytest.raises(CommandError, match="except for topicIds"):
            apply(**change)
    apply(offsets={})
