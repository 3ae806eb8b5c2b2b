"""Group B: what the operator stores.

Positions are always real offsets here, so upstream's sentinels (and its versions that had only
them) have no counterpart: B2, B3 and B9 are about those.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.connectors.discovery import DiscoveryState, Retained
from balanced_source.connectors.kafka import KafkaPartitionSplit, KafkaSource
from balanced_source.coordinator import (
    Checkpoint,
    CoordinatorState,
    HostPhase,
    HostState,
    state_codec,
)
from balanced_source.errors import CorruptDocumentError, IncompatibleVersionError
from support.builders import UID, make_report
from support.world import kafka_source

SOURCE = kafka_source("c0", "c1")


def split(topic: str, partition: int, *, cluster: str = "c0", **more: Any) -> KafkaPartitionSplit:
    return KafkaPartitionSplit(
        cluster=cluster, topic=topic, partition=partition, offset=7 * partition, **more
    )


def checkpoint(**enumerator: Any) -> Checkpoint[Any, Any]:
    assigned = {s.split_id: s for t in range(10) for p in range(10) if (s := split(f"t{t}", p))}
    state: CoordinatorState[KafkaPartitionSplit] = CoordinatorState(
        epoch=3,
        parallelism=4,
        hosts={"0": HostState()},
        owners={s: s[2] % 4 for s in assigned},
        splits=assigned,
    )
    return Checkpoint(coordinator=state, enumerator=DiscoveryState(**enumerator))


def again(stored: Checkpoint[Any, Any], source: KafkaSource = SOURCE) -> Checkpoint[Any, Any]:
    return state_codec.decode(state_codec.encode(stored, source, uid=UID), source, uid=UID)


@pytest.mark.scenario("B1", "B4")
def test_the_current_version_makes_a_round_trip() -> None:
    """10 topics × 10 assigned splits, 10 × 10 that wait, the flags."""
    waiting = {s.split_id: s for t in range(10) for p in range(10, 20) if (s := split(f"t{t}", p))}
    for flag in (True, False):
        stored = checkpoint(unassigned=waiting, discovered=frozenset({"c0"}), rebalance_due=flag)
        assert again(stored) == stored


@pytest.mark.scenario("B7", "B10")
def test_clusters_with_retained_splits_make_a_round_trip() -> None:
    """Two clusters, six splits, a retained one with its deadline; others have none."""
    kept = split("t", 5, cluster="c1")
    stored = checkpoint(
        unassigned={
            s.split_id: s for p in range(3) for c in ("c0", "c1") if (s := split("u", p, cluster=c))
        },
        retained={kept.split_id: Retained(split=kept, until=123.0)},
        preferred={("c0", "u", 0): 2},
        finished=frozenset({("c0", "t0", 1)}),
    )

    assert again(stored) == stored
    assert again(stored).enumerator.retained[kept.split_id].until == 123.0


@pytest.mark.scenario("B8")
def test_absent_fields_stay_absent() -> None:
    """A stop on one split, an id of the topic on another, neither on a third."""
    some = [split("u", 0, stopping_offset=9), split("u", 1, topic_id="x"), split("u", 2)]
    stored = checkpoint(unassigned={s.split_id: s for s in some})

    assert again(stored).enumerator.unassigned == stored.enumerator.unassigned


def document(stored: Checkpoint[Any, Any]) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(state_codec.encode(stored, SOURCE, uid=UID))
    return parsed


@pytest.mark.scenario("B5")
@pytest.mark.parametrize("damage", ["trailing", "edited", "torn", "not ours"])
def test_damage_is_found(damage: str) -> None:
    """Upstream finds a trailing byte; here a digest finds any change."""
    text = state_codec.encode(checkpoint(), SOURCE, uid=UID)
    damaged = {
        "trailing": text + "x",
        "edited": text.replace('"epoch":3', '"epoch":4'),
        "torn": text[: len(text) // 2],
        "not ours": "{}",
    }[damage]
    assert damaged != text

    with pytest.raises(CorruptDocumentError):
        state_codec.decode(damaged, SOURCE, uid=UID)


@pytest.mark.scenario("B6")
def test_a_newer_version_is_refused_by_naming_both() -> None:
    """The document's own version, and that of the connector's state in it."""
    body = document(checkpoint())
    with pytest.raises(
        IncompatibleVersionError, match=r"version 99, this software reads versions up to \d"
    ):
        state_codec.decode(json.dumps({**body, "version": 99}), SOURCE, uid=UID)
    with pytest.raises(IncompatibleVersionError, match="version 99"):
        SOURCE.decode_state(99, {})


@pytest.mark.scenario("B11")
def test_reports_that_wait_behind_the_gate_are_part_of_the_state() -> None:
    """FLINK-40469: a snapshot inside the recovery window kept them for no one."""
    waiting = make_report(2, positions={("c0", "t0", 1): 42})
    plain = checkpoint()
    hosts = {"0": HostState(incarnation=2, phase=HostPhase.RECOVERING, report=waiting)}
    stored = replace(plain, coordinator=replace(plain.coordinator, hosts=hosts))

    assert again(stored).coordinator.hosts["0"].report == waiting
