"""What the planner asks of Kafka: whose settings count, and which cluster is asked."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaReaderSettings, OnDataLoss, ReadLimits
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import DiscoveryError
from balanced_source.host import ReaderPlan, SplitRange
from balanced_source.host.ends import Look
from balanced_source_spark.contract.half import Query
from balanced_source_spark.kafka import hooks as module
from balanced_source_spark.kafka.hooks import KafkaHooks
from support.planner_context import CONTEXT
from support.world import kafka_source

A, B = ("c", "t", 0), ("former", "t", 1)


class Admin:
    """Notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.begins_at: Mapping[SplitId, int] = {}

    def begins(self, cluster: Any, split_ids: Any) -> Mapping[SplitId, int]:
        return {s: self.begins_at.get(s, 0) for s in split_ids}

    def commit(self, cluster: Any, group: str, offsets: Any) -> None:
        self.asked.append((cluster.name, group, offsets))

    def records_from(self, cluster: Any, millis: Any) -> str:
        self.asked.append((cluster.name, millis))
        return "times"

    def ends(self, cluster: Any, split_ids: Any, _marks: Any) -> Mapping[SplitId, Any]:
        self.asked.append((cluster.name, tuple(split_ids)))
        raise DiscoveryError("silent", scope=cluster.name, answers={})

    def high_watermarks(self, cluster: Any, split_ids: Any) -> Mapping[SplitId, int]:
        self.asked.append((cluster, split_ids))
        return dict.fromkeys(split_ids, 9)

    def statistics(self) -> Mapping[str, Any]:
        return {}

    def close(self) -> None:
        self.asked.append(("closed",))


class Scene:
    """Hooks of a query whose source has cluster c now, and had another one before."""

    def __init__(self, **changes: Any) -> None:
        now = kafka_source("c", **changes).reader_settings()
        joined = kafka_source("c", "former", **changes).reader_settings()
        query: Any = Query(client_id="me", read=None)
        context: Any = replace(
            CONTEXT, query=query, settings=lambda: now, known_settings=lambda: joined
        )
        self.hooks, self.admin = KafkaHooks(context), Admin()
        self.hooks.__dict__["_admin"] = self.admin


def test_event_times_are_asked_of_former_clusters_too() -> None:
    """A micro-batch may have been planned before they left."""
    scene = Scene()

    found: Any = scene.hooks.event_times("former", {B: 5})

    assert found == "times"
    assert scene.admin.asked == [("former", {B: 5})]


def test_a_cluster_that_does_not_answer_is_passed_on() -> None:
    scene = Scene()

    with pytest.raises(DiscoveryError, match="silent"):
        scene.hooks.ends("c", [A], {})
    assert scene.admin.asked == [("c", (A,))]


@pytest.mark.parametrize(
    ("policy", "may_skip"), [(OnDataLoss.CONTINUE, True), (OnDataLoss.FAIL, False)]
)
def test_lost_records_are_skipped_with_consent_only(policy: OnDataLoss, *, may_skip: bool) -> None:
    assert Scene(on_data_loss=policy).hooks.may_skip() is may_skip


def test_the_limits_of_the_newest_assignment_count() -> None:
    hooks = Scene(limits=ReadLimits(max_records=3)).hooks

    assert hooks.admit({A: 5}, {A: 9}, may_wait=True) == {A: 8}


@pytest.mark.parametrize(
    ("group", "committed"), [("g", [("c", "g", {A: 5})]), (None, []), ("", [])]
)
def test_positions_are_committed_if_there_is_a_group(
    monkeypatch: pytest.MonkeyPatch, group: str | None, committed: list[Any]
) -> None:
    """A split that was never read has no position."""

    class AtOnce:
        def __init__(self, commit_to: Any) -> None:
            self._commit_to = commit_to

        def note(self, positions: Mapping[SplitId, int]) -> None:
            self._commit_to("c", positions)

        def close(self) -> None:
            """Nothing is left."""

    monkeypatch.setattr(module, "GroupCommits", AtOnce)
    scene = Scene(commit_group=group)

    scene.hooks.note_delivered(StreamOffset(positions={A: 5, ("c", "t", 9): None}))

    assert scene.admin.asked == committed


def test_sizes_are_sampled_with_the_settings_of_the_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []

    def sampled(config: Mapping[str, Any], split_id: SplitId, offset: int) -> float:
        asked.append((config["client.id"], config["bootstrap.servers"], split_id, offset))
        return 10.0

    monkeypatch.setattr(module, "sampled", sampled)
    scene = Scene(limits=ReadLimits(max_bytes=30))

    assert scene.hooks.admit({A: 5}, {A: 99}, may_wait=True) == {A: 8}
    assert asked == [("me-sizes", "nowhere:1", A, 5)]


def test_skipped_records_are_numbers_of_the_report_once_there_are_any() -> None:
    scene = Scene(on_data_loss=OnDataLoss.CONTINUE)
    hooks, known = scene.hooks, kafka_source("c", on_data_loss=OnDataLoss.CONTINUE)
    plans = [ReaderPlan(subtask_id=0, ranges=(SplitRange(split_id=A, start=0, end=9),))]

    hooks.note_planned(plans, known.reader_settings())
    assert hooks.numbers() == {}
    scene.admin.begins_at = {A: 4}
    hooks.note_planned(plans, known.reader_settings())

    assert list(hooks.numbers().values()) == [4]


def test_only_clients_that_were_made_are_closed() -> None:
    scene = Scene()

    scene.hooks.close()
    assert scene.admin.asked == [("closed",)]
    KafkaHooks(scene.hooks._context).close()


def test_open_transactions_are_looked_for_with_the_client_of_the_query() -> None:
    scene = Scene()
    cluster: Any = "cluster"

    assert scene.hooks._high_watermarks(cluster, [A]) == {A: 9}
    assert scene.admin.asked == [(cluster, [A])]


def test_open_transactions_are_watched_in_the_clusters_that_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene()
    kept: list[set[str]] = []
    monkeypatch.setattr(scene.hooks._transactions, "keep", lambda names: kept.append(set(names)))

    scene.hooks.note_look(StreamOffset(positions={A: 5, B: None}), Look())

    assert kept == [{"c", "former"}]


def test_a_cluster_that_has_left_is_known_until_its_splits_have_left() -> None:
    """A micro-batch that was planned before may read it; what is planned then does not."""
    scene = Scene()
    now, before = kafka_source("c").reader_settings(), kafka_source("former").reader_settings()

    def known() -> set[str]:
        return set(KafkaReaderSettings.of(scene.hooks.with_former(now, before)).clusters)

    assert known() == {"c", "former"}
    scene.hooks.note_look(StreamOffset(positions={A: 5, B: None}), Look())
    assert known() == {"c", "former"}
    scene.hooks.note_look(StreamOffset(positions={A: 5}), Look())
    assert known() == {"c"}


def test_what_tasks_have_skipped_is_counted() -> None:
    scene, told = Scene(), list[Any]()
    losses: Any = scene.hooks._losses
    losses.note_skipped = told.append

    scene.hooks.note_skipped([SplitRange(split_id=A, start=3, end=5)])

    assert told == [[SplitRange(split_id=A, start=3, end=5)]]


def test_no_broker_has_no_figures() -> None:
    assert list(Scene().hooks.figures()) == []
