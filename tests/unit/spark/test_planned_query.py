"""The planner under a query that dies at any step: every record once."""

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balanced_source.connectors.kafka import LATEST, KafkaCluster, OnDataLoss, ReadLimits
from balanced_source.documents import stream_offset
from balanced_source.documents.stream_offset import FINISHED
from balanced_source.errors import FatalProblemError, TransientDiscoveryError
from balanced_source_spark.executors import Board
from balanced_source_spark.options import Options
from balanced_source_spark.sample_collector import SampleCollector
from support.planned_query import DELIVERED, LOGGED, PlannedQuery, all_of
from support.world import Broker, kafka_source
from testbed.waiting import wait_until


def over_clusters(clusters: int, limit: int | None, *, is_bounded: bool) -> PlannedQuery:
    """A query over clusters with two partitions of seven records each."""
    broker, names = Broker(is_bounded=is_bounded), [f"c{number}" for number in range(clusters)]
    for name in names:
        broker.create(name, "t", range(2), end=7)
    source = kafka_source(
        *names,
        stopping_offsets=LATEST if is_bounded else None,
        limits=ReadLimits(max_records=limit),
        discovery_interval=None,
    )
    return PlannedQuery(source=source, broker=broker)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    clusters=st.sampled_from([1, 3]),
    limit=st.sampled_from([None, 5]),
    is_bounded=st.booleans(),
    deaths=st.lists(st.sampled_from([None, LOGGED, DELIVERED]), min_size=2, max_size=10),
)
def test_every_record_is_delivered_once_through_deaths_at_any_step(
    *, clusters: int, limit: int | None, is_bounded: bool, deaths: list[str | None]
) -> None:
    """Limits on and off, bounded and unbounded, one and many clusters, restarts at each step."""
    query, steps = over_clusters(clusters, limit, is_bounded=is_bounded), iter(deaths)

    def is_done() -> bool:
        has_closed = not is_bounded or bool(query.offsets and query.offsets[-1].get(FINISHED))
        return has_closed and query.records == all_of(query.broker)

    wait_until(
        lambda: (query.trigger(die=next(steps, None)), is_done())[1],
        20,
        "all to be read",
        interval=0.01,
    )
    query.restart()
    query.trigger(die=next(steps, None))
    query.close()

    assert query.records == all_of(query.broker)


def test_a_query_begins_where_it_was_started_also_when_its_first_micro_batch_is_replayed() -> None:
    """Without an operator, Spark's checkpoint is all that knows where the ends of the logs were."""
    broker = Broker()
    broker.create("c", "t", range(2), end=7)
    query = PlannedQuery(source=kafka_source("c", starting_offsets=LATEST), broker=broker)

    query.trigger(die=LOGGED)
    broker.ends = dict.fromkeys(broker.ends, 12)
    query.trigger_until(
        lambda: query.records == all_of(broker, dict.fromkeys(broker.ends, 7)), "what is new"
    )
    query.close()

    assert stream_offset.from_json(query.offsets[0]).positions == dict.fromkeys(broker.ends, 7)


def test_a_query_on_nothing_is_idle_soon_and_reads_what_appears() -> None:
    """A pattern that matches no topic yet: there is nothing to wait for."""
    query = PlannedQuery(
        source=kafka_source("c", discovery_interval=0.01),
        broker=Broker(),
        options=Options(start_timeout=3600.0),
    )
    query.trigger()
    assert query.last.positions == {}

    query.broker.create("c", "t", range(2), end=7)
    query.trigger_until(lambda: query.records == all_of(query.broker), "the topic")
    query.close()


@pytest.mark.parametrize("limit", [None, 3])
def test_a_bounded_query_says_once_in_each_life_that_it_is_finished(limit: int | None) -> None:
    """The program ends the query that says so; a query that starts again has to be ended again."""
    query = over_clusters(1, limit, is_bounded=True)

    for _ in range(3):
        before = len(query.offsets)
        query.trigger_until(
            lambda n=before: len(query.offsets) > n and query.last.closings > 0, "the closing one"
        )
        assert not query.trigger(), "the query is idle"
        query.restart()
    query.close()

    assert query.records == all_of(query.broker)


def recreatable(
    policy: OnDataLoss, *, interval: float | None = 0.05, **options: Any
) -> PlannedQuery:
    """A query that has read all 30 records of each of two partitions of a topic."""
    broker = Broker()
    broker.create("c", "t", range(2), end=30)
    broker.topic_ids["c", "t"] = "first"
    query = PlannedQuery(
        source=kafka_source("c", on_data_loss=policy, discovery_interval=interval),
        broker=broker,
        options=Options(start_timeout=5.0, **options),
    )
    query.trigger_until(lambda: query.records == all_of(broker), "the old topic")
    return query


def recreate(query: PlannedQuery, end: int) -> None:
    """The topic is deleted and created again, with more records than the old one had or fewer."""
    broker = query.broker
    broker.delete(list(broker.ends))
    broker.topic_ids["c", "t"] = "second"
    broker.create("c", "t", range(2), end=end)


@pytest.mark.parametrize("end", [10, 50])
def test_a_recreated_topic_is_read_once_while_a_larger_parallelism_waits_for_executors(
    tmp_path: Path, end: int
) -> None:
    """The epoch in use knows the old topic, the newest assignment does not."""
    query = recreatable(OnDataLoss.CONTINUE, executors_dir=tmp_path, executor_patience=3600.0)
    Board(tmp_path).post("ready", 2)
    old = all_of(query.broker)
    query.channel.rescale(5)
    query.trigger_until(lambda: Board(tmp_path).read("wanted") == 5, "executors to be asked for")
    recreate(query, end)
    runtime = query.planner._runtime
    query.trigger_until(
        lambda: runtime.newest_assignment(timeout=0.0).owners == {}, "the old splits to be revoked"
    )
    for _ in range(5):
        query.trigger()
    assert query.records == old, "nothing of the new topic is read at offsets of the old one"
    Board(tmp_path).post("ready", 5)

    query.trigger_until(lambda: query.records == old + all_of(query.broker), "the new topic")
    query.close()

    assert query.last.parallelism == 5


@pytest.mark.parametrize("end", [10, 50])
def test_without_an_operator_a_recreated_topic_ends_the_query_in_words(end: int) -> None:
    """Spark's own source fails, too. Discovery may be minutes away."""
    query = recreatable(OnDataLoss.FAIL, interval=3600.0)
    read = query.records
    recreate(query, end)

    with pytest.raises(FatalProblemError, match="topic t was deleted and created again") as caught:
        query.trigger_until(lambda: query.records != read, "the new topic")
    query.close()

    assert query.records == read
    assert "none that is known" in str(caught.value), "all of the old topic had been read"
    assert "Set onDataLoss to Continue" in str(caught.value)


def test_unread_records_of_a_recreated_topic_are_named_and_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Limits leave records unread.

    Discovery, which gives the new topic out, may be minutes away.
    """
    broker = Broker()
    broker.create("c", "t", range(2), end=30)
    broker.topic_ids["c", "t"] = "first"
    limits = ReadLimits(max_records=10)
    source = kafka_source(
        "c", on_data_loss=OnDataLoss.CONTINUE, discovery_interval=3600.0, limits=limits
    )
    query = PlannedQuery(source=source, broker=broker)
    query.trigger_until(lambda: query.records.total() == 20, "some records")
    recreate(query, 5)

    query.trigger_until(lambda: query.hooks._losses.total > 0, "the loss to be counted")
    assert not query.trigger()
    query.close()

    assert query.hooks._losses.total == 40
    assert (
        "partition 0 from offset 10 to 29; partition 1 from offset 10 to 29"
        in capsys.readouterr().out
    )


SPLIT = ("c", "t", 0)


@pytest.mark.parametrize("end", [20, 50], ids=["before the position", "beyond it"])
def test_a_log_that_was_cut_ends_the_query_with_the_offsets_that_are_gone(end: int) -> None:
    """By an unclean election or a restored disk.

    Other records may have taken the offsets already.
    """
    query = recreatable(OnDataLoss.FAIL)
    read = query.records
    query.admin.cut(SPLIT, 18, end=end)

    with pytest.raises(
        FatalProblemError, match=r"truncated.*partition 0 from offset 18 to 29.*Set onDataLoss"
    ):
        query.trigger_until(lambda: query.records != read, "more records")
    query.restart()
    with pytest.raises(FatalProblemError, match="partition 0 from offset 18 to 29"):
        query.trigger_until(lambda: query.records != read, "more records")
    query.close()

    assert query.records == read


def test_without_consent_nothing_of_a_log_that_was_cut_is_read_until_the_user_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With an operator the query stays, and a condition says what is gone."""
    query = recreatable(OnDataLoss.FAIL)
    monkeypatch.setattr(query.channel, "has_operator", True, raising=False)
    read = query.records
    query.admin.cut(SPLIT, 18, end=50)
    query.broker.ends["c", "t", 1] = 60

    query.trigger_until(lambda: query.last.positions["c", "t", 1] == 60, "the other partition")
    query.close()

    assert query.last.positions[SPLIT] == 30
    assert (query.records - read).keys() == {(("c", "t", 1), "first", n) for n in range(30, 60)}


@pytest.mark.parametrize("end", [20, 50], ids=["before the position", "beyond it"])
def test_with_consent_the_log_that_was_cut_is_read_from_there(
    end: int, capsys: pytest.CaptureFixture[str]
) -> None:
    query = recreatable(OnDataLoss.CONTINUE)
    read = query.records
    query.admin.cut(SPLIT, 18, end=end)

    query.trigger_until(lambda: query.last.positions[SPLIT] == end, "the new records")
    query.restart()
    assert not query.trigger()
    query.close()

    assert query.records == read + Counter((SPLIT, "first", offset) for offset in range(18, end))
    assert capsys.readouterr().out.count("partition 0 from offset 18 to 29") == 1, "said once"


def test_a_new_leader_with_the_whole_log_is_read_on_and_checked_once() -> None:
    query = recreatable(OnDataLoss.FAIL)
    query.admin.term += 1
    query.admin.answers_checks = False
    query.broker.ends[SPLIT] = 35

    assert not query.trigger(), "not before the log is known to be whole"
    query.admin.answers_checks = True
    query.trigger_until(lambda: query.last.positions[SPLIT] == 35, "the new records")
    query.admin.answers_checks = False
    query.broker.ends["c", "t", 1] = 31
    query.trigger_until(
        lambda: query.last.positions["c", "t", 1] == 31, "the split that was idle at the check"
    )
    query.restart()
    query.broker.ends[SPLIT] = 36
    query.trigger_until(
        lambda: query.last.positions[SPLIT] == 36, "the next record, after a restart"
    )
    query.close()

    assert query.records == all_of(query.broker)


def test_a_query_that_ends_by_itself_waits_until_logs_are_known_to_be_whole() -> None:
    query = recreatable(OnDataLoss.FAIL)
    query.admin.term += 1
    query.broker.ends[SPLIT] = 35
    query.restart()
    query.admin.answers_checks = False
    threading.Timer(0.5, lambda: setattr(query.admin, "answers_checks", True)).start()
    query.available_now()
    query.close()

    assert query.records == all_of(query.broker)


@pytest.mark.parametrize("limit", [None, 3])
def test_a_query_that_is_triggered_once_reads_all_available_records(limit: int | None) -> None:
    """It waits for the assignment and for all ends.

    Limits would leave records that no one comes back for.
    """
    query = over_clusters(3, limit, is_bounded=False)

    assert query.once()
    assert query.records == all_of(query.broker)
    query.restart()
    query.broker.ends["c1", "t", 1] += 4
    assert query.once()
    query.close()

    assert query.records == all_of(query.broker)


@pytest.mark.parametrize("is_once", [True, False], ids=["once", "available now"])
def test_a_query_that_ends_by_itself_waits_for_the_slowest_cluster(
    monkeypatch: pytest.MonkeyPatch, *, is_once: bool
) -> None:
    """The first assignment has the splits of the clusters that have answered so far."""
    broker, has_first = Broker(), threading.Event()
    for name in ("fast", "slow"):
        broker.create(name, "t", range(2), end=7)
    answer = broker.execute
    monkeypatch.setattr(
        broker,
        "execute",
        lambda call: answer(call) if call.scope == "fast" or has_first.wait(20) else None,
    )
    query = PlannedQuery(
        source=kafka_source("fast", "slow", discovery_interval=None), broker=broker
    )
    query.planner.initialOffset()
    threading.Thread(
        target=lambda: (query.planner._runtime.newest_assignment(timeout=20), has_first.set()),
        daemon=True,
    ).start()

    if is_once:
        query.once()
    else:
        query.available_now()
    query.close()

    assert query.records == all_of(broker)


def test_the_first_micro_batch_without_an_operator_holds_the_splits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without them, nothing would show the next query that the topic was recreated early."""
    broker, may_answer = Broker(), threading.Event()
    broker.create("c", "t", range(2), end=0)
    answer = broker.execute
    monkeypatch.setattr(
        broker, "execute", lambda call: answer(call) if may_answer.wait(20) else None
    )
    query = PlannedQuery(source=kafka_source("c"), broker=broker)

    def answer_after_registration() -> None:
        wait_until(lambda: query.channel.coordinator.state.epoch, 20, "the registration")
        may_answer.set()

    threading.Thread(target=answer_after_registration, daemon=True).start()
    query.trigger()  # Spark logs the first offset also when it is the initial one
    query.close()

    assert stream_offset.from_json(query.offsets[0]).positions.keys() == {
        ("c", "t", 0),
        ("c", "t", 1),
    }


@pytest.mark.parametrize("records", [0, 30], ids=["an empty micro-batch", "records"])
@pytest.mark.parametrize("end", [10, 50], ids=["fewer records", "more records"])
def test_a_topic_that_is_recreated_while_the_query_is_down_ends_the_next_one_in_words(
    end: int, records: int
) -> None:
    """The replay of an empty micro-batch has no topic to compare; the look at the ends has."""
    broker = Broker()
    broker.create("c", "t", range(2), end=records)
    broker.topic_ids["c", "t"] = "first"
    query = PlannedQuery(source=kafka_source("c", on_data_loss=OnDataLoss.FAIL), broker=broker)
    query.trigger_until(
        lambda: bool(query.offsets) and query.records == all_of(broker), "the old topic"
    )
    read = query.records
    recreate(query, end)
    query.restart()

    with pytest.raises(FatalProblemError, match="topic t was deleted and created again"):
        query.trigger_until(lambda: query.records != read, "the new topic")
    query.close()

    assert query.records == read


def bounded_with_a_deleted_topic(policy: OnDataLoss) -> PlannedQuery:
    """A bounded query that has read 3 of 7 records of a lost topic, and 3 of 7 of another."""
    broker = Broker(is_bounded=True)
    for topic in ("t", "u"):
        broker.create("c", topic, [0], end=7)
    limits = ReadLimits(max_records_per_split=3)
    source = kafka_source(
        "c", stopping_offsets=LATEST, limits=limits, discovery_interval=None, on_data_loss=policy
    )
    query = PlannedQuery(source=source, broker=broker)
    query.trigger_until(lambda: query.records.total() == 6, "some records")
    broker.delete([("c", "t", 0)])
    return query


def test_a_bounded_source_whose_topic_is_deleted_finishes_without_it_by_consent() -> None:
    query = bounded_with_a_deleted_topic(OnDataLoss.CONTINUE)

    query.trigger_until(lambda: query.last.closings > 0, "the closing micro-batch")
    (problem,) = query.planner._runtime.problems
    lost = query.hooks._losses.total
    query.close()

    want = [(("c", "t", 0), None, n) for n in range(3)] + [
        (("c", "u", 0), None, n) for n in range(7)
    ]
    assert query.records == Counter(want)
    assert (problem.reason, problem.is_fatal, lost) == ("TopicRecreated", False, 4)
    assert "topic t was deleted" in problem.message
    assert "partition 0 from offset 3 to 6" in problem.message


def test_without_consent_a_bounded_source_whose_topic_is_deleted_ends_with_the_reason() -> None:
    """With an operator it waits, and the condition Degraded says so."""
    query = bounded_with_a_deleted_topic(OnDataLoss.FAIL)

    with pytest.raises(
        FatalProblemError,
        match=r"topic t was deleted .* partition 0 from offset 3 to 6.*onDataLoss",
    ):
        query.trigger_until(lambda: query.last.closings > 0, "the closing micro-batch")
    query.close()


def test_a_slow_reader_of_a_source_that_assigns_reads_all_that_it_owns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where readers do not ask for splits, no other reader could take what it leaves."""
    query = over_clusters(1, None, is_bounded=False)
    query.trigger_until(lambda: query.records == all_of(query.broker), "all to be read")
    monkeypatch.setattr(SampleCollector, "speeds", {0: 1e6, 1: 1e-3})
    query.broker.ends = dict.fromkeys(query.broker.ends, 1_000)

    query.trigger()
    query.close()

    assert set(query.last.positions.values()) == {1_000}


def test_the_lag_is_unknown_while_a_cluster_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last known end is old: the lag would look smaller than it is."""
    query = over_clusters(2, None, is_bounded=False)
    query.trigger_until(lambda: query.records == all_of(query.broker), "all to be read")
    query.trigger()
    assert query.planner._runtime._progress.lag == 0
    answered = query.admin.ends

    def ends(cluster: KafkaCluster, *asked: Any) -> Any:
        if cluster.name == "c1":
            raise TransientDiscoveryError("no answer", scope="c1")
        return answered(cluster, *asked)

    monkeypatch.setattr(query.admin, "ends", ends)
    query.broker.ends["c0", "t", 0] += 1
    query.trigger()
    query.close()

    assert query.planner._runtime._progress.lag is None


@pytest.mark.parametrize("limit", [None, 5])
def test_records_of_the_running_micro_batch_count_as_lag(limit: int | None) -> None:
    """Without limits a micro-batch takes everything, and an autoscaler would see a lag of 0."""
    query = over_clusters(1, limit, is_bounded=False)
    query.trigger_until(lambda: query.records == all_of(query.broker), "all to be read")
    query.trigger()
    told = query.planner._runtime
    assert told._progress.lag == 0, "at once, when there is nothing more"
    query.broker.ends = dict.fromkeys(query.broker.ends, 1_000)

    query.trigger()

    assert told._progress.lag == 2 * (1_000 - 7)
    query.close()
