"""A topic that is deleted and created again while the history before it is read."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import ANY_SCOPE, CallFailure, Measure, SwitchPosition
from balanced_source.connectors.discovery import Discovered
from balanced_source.connectors.hybrid import HybridSource, HybridState, PartCall, checked_hybrid
from balanced_source.connectors.hybrid.enumerator import HybridSplitEnumerator
from balanced_source.connectors.kafka import (
    AfterHistory,
    DiscoverKafka,
    InitializeKafka,
    KafkaCluster,
    KafkaPartitionSplit,
    KafkaSource,
    OnDataLoss,
    TopicList,
    TopicPattern,
    resolve_start,
)
from balanced_source.coordinator import CoordinatorState, ExecuteCall, ReportFact
from balanced_source.coordinator.context import CoordinatorContext
from balanced_source.errors import InvalidSpecError, RefusedDiscoveryError, TransientDiscoveryError
from support.hybrid_world import TIME, MeasuredLists, answer
from support.kafka_lookup import FakeLookup, Log

SPLIT = ("main", "orders", 0)
LOG = Log(times=[1000 + n for n in range(10)])
"""Longer than the history, so no offset of the history is out of its range."""
OLD, NEW = {"main": {"orders": "old"}}, {"orders": "new"}


def kafka(loss: OnDataLoss = OnDataLoss.FAIL, *topics: str, pattern: str = "") -> KafkaSource:
    return KafkaSource(
        clusters=(KafkaCluster(name="main", bootstrap_servers="b:9092"),),
        subscriber=TopicPattern(pattern) if pattern else TopicList(topics or ("orders",)),
        on_data_loss=loss,
    )


def behind(loss: OnDataLoss, **known: Any) -> KafkaSource:
    return kafka(loss).starting_after(SwitchPosition(**known))


def start(source: KafkaSource, ids: dict[str, str]) -> int:
    found = resolve_start(source.starting_offsets, [SPLIT], FakeLookup({SPLIT: LOG}), ids)
    return found[SPLIT]


MEASURED: Any = pytest.mark.parametrize(
    "measured", [{"offsets": {("orders", 0): 3}}, {"time": 1003}], ids=["offsets", "time"]
)


@MEASURED
def test_the_same_topic_is_continued(measured: dict[str, Any]) -> None:
    source = behind(OnDataLoss.FAIL, **measured, meanings={"main": {"orders": "new"}})

    assert start(source, NEW) == start(behind(OnDataLoss.FAIL, **measured), NEW) > 0


@MEASURED
def test_another_topic_is_not_read_without_consent(measured: dict[str, Any]) -> None:
    with pytest.raises(RefusedDiscoveryError, match="topic orders of cluster main was deleted and"):
        start(behind(OnDataLoss.FAIL, **measured, meanings=OLD), NEW)


@MEASURED
def test_another_topic_is_read_from_its_first_record_with_consent(measured: dict[str, Any]) -> None:
    assert start(behind(OnDataLoss.CONTINUE, **measured, meanings=OLD), NEW) == 0


@pytest.mark.parametrize(
    ("meanings", "ids"),
    [({}, NEW), ({"main": {}}, NEW), ({"other": OLD["main"]}, NEW), (OLD, {})],
    ids=["never asked", "no such topic asked for", "another cluster", "no id now"],
)
def test_an_unknown_id_is_not_compared(meanings: Any, ids: dict[str, str]) -> None:
    source = behind(OnDataLoss.FAIL, offsets={("orders", 0): 3}, meanings=meanings)

    assert start(source, ids) == 3


def test_a_topic_that_did_not_exist_is_another_one_if_the_history_is_of_it() -> None:
    absent = {"main": {"orders": ""}}

    source = behind(OnDataLoss.CONTINUE, offsets={("orders", 0): 3}, meanings=absent)
    assert start(source, NEW) == 0

    with pytest.raises(RefusedDiscoveryError, match="orders of cluster main did not exist when"):
        start(behind(OnDataLoss.FAIL, offsets={("orders", 0): 3}, meanings=absent), NEW)

    # A history of something else, such as a table: its time alone counts.
    assert start(behind(OnDataLoss.FAIL, time=1003, meanings=absent), NEW) == 4


def test_what_is_lost_between_history_and_topic_is_told() -> None:
    source = behind(OnDataLoss.CONTINUE, offsets={("orders", 0): 3, ("sales", 1): 5}, meanings=OLD)

    def split(topic: str, number: int, offset: int, topic_id: str) -> KafkaPartitionSplit:
        return KafkaPartitionSplit(
            cluster="main", topic=topic, partition=number, offset=offset, topic_id=topic_id
        )

    told = source.begun_elsewhere(
        [split("orders", 0, 0, "new"), split("sales", 0, 2, "s"), split("sales", 1, 5, "s")]
    )

    assert len(told) == 2
    assert (
        "topic orders (id new) was deleted and created again since the history was beg" in told[0]
    )
    assert "topic sales (id s) does not begin where the history ends" in told[1]
    assert "partition 0 from offset 0 to 1" in told[1]
    assert "partition 1" not in told[1]
    assert kafka().begun_elsewhere([split("orders", 0, 9, "new")]) == []


# --- the ids are looked up at the beginning -------------------------------------------------------


def hybrid(*topics: str) -> HybridSource:
    following = kafka(OnDataLoss.CONTINUE, *topics)
    return checked_hybrid([(MeasuredLists(count=0), None), (following, TIME)], field="parts")


def enumerator_of(source: HybridSource, state: HybridState | None = None) -> HybridSplitEnumerator:
    return HybridSplitEnumerator(CoordinatorContext(CoordinatorState()), source, state)


def calls(enumerator: HybridSplitEnumerator, kind: type = DiscoverKafka) -> list[ExecuteCall]:
    """Return the calls of a kind that were made since the last look, and forget all."""
    context: Any = enumerator.context
    found = [e for e in context.turn.effects if isinstance(e, ExecuteCall)]
    context.turn.effects.clear()
    return [e for e in found if isinstance(e.call, PartCall) and isinstance(e.call.call, kind)]


def listed(**ids: str) -> Discovered:
    identities = {("main", topic, 0): topic_id for topic, topic_id in ids.items()}
    return Discovered(split_ids=frozenset(identities), identities=identities)


def begun(source: HybridSource) -> tuple[HybridSplitEnumerator, PartCall]:
    enumerator = enumerator_of(source)
    enumerator.start()
    (look,) = calls(enumerator)
    assert isinstance(look.call, PartCall)
    assert look.call.part == "kafka"
    return enumerator, look.call


def known(enumerator: HybridSplitEnumerator) -> Any:
    return enumerator.snapshot_state().looks.of_part("kafka")


def switched(enumerator: HybridSplitEnumerator) -> AfterHistory:
    """List the empty history and the topic; returns where the topic is read from."""
    part: Any = enumerator.part
    context: Any = enumerator.context
    pending = [known.call for known in context.calls.values()]
    (call,) = (call for call in pending if call.part == enumerator.name)
    enumerator.handle_part_call(call, answer(call))
    assert enumerator.part is not part
    (first,) = calls(enumerator)
    assert isinstance(first.call, PartCall)
    enumerator.handle_part_call(first.call, listed(orders="new"))
    (start_of,) = calls(enumerator, InitializeKafka)
    assert isinstance(start_of.call, PartCall)
    assert isinstance(start_of.call.call, InitializeKafka)
    history = start_of.call.call.starting_offsets
    assert isinstance(history, AfterHistory)
    return history


def test_the_id_of_the_beginning_reaches_the_switch() -> None:
    enumerator, look = begun(hybrid())
    enumerator.handle_look(look, listed(orders="old"))

    assert known(enumerator) == OLD
    assert switched(enumerator).meanings == OLD
    assert known(enumerator) == {}


def test_the_id_survives_a_restart_and_is_not_replaced() -> None:
    enumerator, look = begun(hybrid())
    enumerator.handle_look(look, listed(orders="old"))
    source = enumerator.source
    written = source.encode_state(enumerator.snapshot_state())

    again = enumerator_of(source, source.decode_state(1, written))
    again.start()
    (second,) = calls(again)
    again.handle_look(second.call, listed(orders="new"))  # type: ignore[arg-type]

    assert known(again) == OLD


def test_the_position_in_the_next_part_survives_a_restart() -> None:
    position = SwitchPosition(offsets={("orders", 0): 3}, meanings=OLD)

    assert SwitchPosition.from_json(position.to_json()) == position
    assert "meanings" not in SwitchPosition(time=3).to_json()


def test_the_state_is_another_one_only_when_an_id_is_new() -> None:
    enumerator, look = begun(hybrid())
    before = enumerator.snapshot_state()
    assert enumerator.snapshot_state() is before

    enumerator.handle_look(look, listed(orders="old"))
    after = enumerator.snapshot_state()
    assert after is not before

    enumerator.handle_look(look, listed(orders="new"))
    assert enumerator.snapshot_state() is after


def test_a_cluster_that_does_not_answer_is_asked_again() -> None:
    enumerator, look = begun(hybrid())
    failure = CallFailure(TransientDiscoveryError("no answer"))

    delays = []
    for _ in range(3):
        enumerator.handle_look(look, failure)
        (again,) = calls(enumerator)
        delays.append(again.delay)

    assert delays == [1.0, 2.0, 4.0]
    assert known(enumerator) == {}


def test_a_later_part_that_does_not_answer_is_told_once() -> None:
    """A wrong address is not found out after hours of history."""
    enumerator, look = begun(hybrid())
    context: Any = enumerator.context
    told = []
    for _ in range(6):
        enumerator.handle_look(look, CallFailure(TransientDiscoveryError("no answer")))
        told += [e for e in context.turn.effects if isinstance(e, ReportFact)]
        context.turn.effects.clear()

    assert [(fact.reason, fact.message, fact.warning) for fact in told] == [
        (
            "DiscoveryFailed",
            "Part kafka, which is read later, cannot be looked at: no answer",
            True,
        )
    ]


def test_a_topic_counts_as_missing_after_the_second_answer() -> None:
    enumerator, look = begun(hybrid("orders", "sales"))
    enumerator.handle_look(look, listed(sales="s"))
    (again,) = calls(enumerator)
    assert known(enumerator) == {"main": {"sales": "s"}}

    enumerator.handle_look(again.call, listed(sales="s"))  # type: ignore[arg-type]

    assert calls(enumerator) == []
    assert known(enumerator) == {"main": {"orders": "", "sales": "s"}}


def test_a_topic_that_is_listed_late_is_not_missing() -> None:
    enumerator, look = begun(hybrid())
    enumerator.handle_look(look, listed())
    (again,) = calls(enumerator)

    enumerator.handle_look(again.call, listed(orders="old"))  # type: ignore[arg-type]

    assert known(enumerator) == OLD


def test_topics_that_a_change_adds_are_looked_up() -> None:
    enumerator, look = begun(hybrid())
    enumerator.handle_look(look, listed(orders="old"))
    calls(enumerator)

    enumerator.handle_source_change(hybrid("orders", "sales"))
    (again,) = calls(enumerator)
    enumerator.handle_look(again.call, listed(orders="new", sales="s"))  # type: ignore[arg-type]

    assert known(enumerator) == {"main": {"orders": "old", "sales": "s"}}


def test_an_answer_after_the_switch_is_ignored() -> None:
    enumerator, look = begun(hybrid())
    assert switched(enumerator).meanings == {}

    enumerator.handle_look(look, listed(orders="old"))

    assert known(enumerator) == {}


def test_a_copy_knows_what_was_looked_up() -> None:
    enumerator, look = begun(hybrid())
    enumerator.handle_look(look, listed(orders="old"))

    assert known(enumerator.fork(CoordinatorContext(CoordinatorState()))) == OLD


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (kafka(OnDataLoss.FAIL, "orders", "gone", "secret"), {"orders": "old", "gone": ""}),
        (kafka(pattern=".*"), {"orders": "old"}),
    ],
    ids=["a list", "a pattern"],
)
def test_a_topic_that_the_cluster_refuses_is_not_missing(
    source: KafkaSource, expected: dict[str, str]
) -> None:
    (call,) = source.looks().values()
    found = listed(orders="old")
    refused = Discovered(
        split_ids=found.split_ids,
        identities=found.identities,
        refused=frozenset({("main", "secret")}),
    )

    assert source.meanings(call, refused) == expected
    assert source.meanings(call, "no listing") == {}


def test_a_part_that_starts_where_it_says_is_not_looked_at() -> None:
    source = checked_hybrid([(MeasuredLists(count=0), None), (kafka(), None)], field="parts")
    enumerator = enumerator_of(source)
    enumerator.start()

    assert calls(enumerator) == []


def test_a_new_topic_is_told_when_it_is_begun() -> None:
    enumerator, look = begun(hybrid())
    enumerator.handle_look(look, listed(orders="old"))
    switched(enumerator)
    part: Any = enumerator.part
    (waiting,) = part.transient.look_ups
    split = KafkaPartitionSplit(
        cluster="main", topic="orders", partition=0, offset=0, topic_id="new"
    )

    part.handle_initialized(waiting, [split])

    context: Any = enumerator.context
    (told,) = [e for e in context.turn.effects if isinstance(e, ReportFact)]
    assert told.reason == "RecordsGone"
    assert told.warning
    assert "since the history was begun" in told.message


# --- the user gives the ids -----------------------------------------------------------------------


def given(topic_id: str) -> Measure:
    return Measure(offsets=("topic", "partition", "offset"), identities=(("orders", topic_id),))


def test_an_id_that_the_user_gives_comes_before_what_was_looked_up() -> None:
    meanings = {"main": {"orders": "looked up"}, ANY_SCOPE: {"orders": "said"}}

    def source(loss: OnDataLoss) -> KafkaSource:
        return behind(loss, offsets={("orders", 0): 3}, meanings=meanings)

    assert start(source(OnDataLoss.FAIL), {"orders": "said"}) == 3
    assert start(source(OnDataLoss.CONTINUE), {"orders": "looked up"}) == 0
    why = "has the id looked up, and startAfter says that the history is of said"
    with pytest.raises(RefusedDiscoveryError, match=why):
        start(source(OnDataLoss.FAIL), {"orders": "looked up"})


def test_a_measure_with_ids_is_the_same_after_json() -> None:
    assert Measure.from_json(given("a").to_json()) == given("a")
    assert "identities" not in Measure(offsets=("a", "b", "c")).to_json()


@pytest.mark.parametrize(
    ("said", "found", "expected"),
    [
        # As kafka-topics shows it, and as the client library does.
        ("e5KQvvYqT-e_EfwofZMpPA", "e5KQvvYqT+e/EfwofZMpPA", 3),
        ("e5KQvvYqT+e/EfwofZMpPA==", "e5KQvvYqT+e/EfwofZMpPA", 3),
        ("e5KQvvYqT-e_EfwofZMpPB", "e5KQvvYqT+e/EfwofZMpPA", 0),
        # A cluster that gives no ids.
        ("e5KQvvYqT-e_EfwofZMpPA", "A" * 22, 3),
    ],
)
def test_an_id_is_the_same_in_both_ways_to_write_it(said: str, found: str, expected: int) -> None:
    meanings = {ANY_SCOPE: {"orders": said}}

    source = behind(OnDataLoss.CONTINUE, offsets={("orders", 0): 3}, meanings=meanings)

    assert start(source, {"orders": found}) == expected


def test_a_topic_that_gets_an_id_when_its_cluster_is_upgraded_is_the_same() -> None:
    meanings = {"main": {"orders": "A" * 22}}

    source = behind(OnDataLoss.FAIL, offsets={("orders", 0): 3}, meanings=meanings)

    assert start(source, NEW) == 3


@pytest.mark.parametrize("topic_id", ["x", "7b9290be-f62a-4fe7-be11-fc287d93293c", "é" * 22])
def test_an_invalid_id_of_a_topic_is_refused_before_the_history_is_read(topic_id: str) -> None:
    with pytest.raises(InvalidSpecError, match="kafka-topics --describe shows"):
        hybrid_given(topic_id)


def hybrid_given(topic_id: str | None) -> HybridSource:
    measure = Measure(offsets=("topic", "partition", "offset"))
    if topic_id is not None:
        measure = replace(measure, identities=(("orders", topic_id),))
    parts = [(MeasuredLists(count=0), None), (kafka(OnDataLoss.FAIL), measure)]
    return checked_hybrid(parts, field="parts")


FIRST, SECOND = "e5KQvvYqT+e/EfwofZMpPA", "f5KQvvYqT+e/EfwofZMpPA"


@pytest.mark.parametrize(("before", "after"), [(None, FIRST), (SECOND, FIRST), (SECOND, None)])
def test_ids_may_be_added_and_corrected_while_the_history_is_read(
    before: str | None, after: str | None
) -> None:
    former, source = hybrid_given(before), hybrid_given(after)
    enumerator, _ = begun(former)
    written = former.encode_state(enumerator.snapshot_state())

    again = enumerator_of(source, source.decode_state(1, written))

    assert again.name == enumerator.name


def test_a_wrong_id_can_be_corrected_after_the_switch() -> None:
    former, source = hybrid_given(SECOND), hybrid_given(FIRST)
    enumerator, look = begun(former)
    enumerator.handle_look(look, listed(orders="looked up"))
    history = switched(enumerator)
    assert history.is_other("main", "orders", FIRST)

    written = former.encode_state(enumerator.snapshot_state())
    restored: Any = enumerator_of(source, source.decode_state(1, written)).part
    enumerator.handle_source_change(source)
    changed: Any = enumerator.part

    for part in (restored, changed):
        assert not part.source.starting_offsets.is_other("main", "orders", FIRST)
        assert part.source.starting_offsets.meanings["main"] == {"orders": "looked up"}


# --- how often is asked ---------------------------------------------------------------------------


def moved(address: str) -> HybridSource:
    cluster = KafkaCluster(name="main", bootstrap_servers=address)
    following = replace(kafka(OnDataLoss.CONTINUE), clusters=(cluster,))
    return checked_hybrid([(MeasuredLists(count=0), None), (following, TIME)], field="parts")


def test_a_change_of_something_else_asks_no_second_time_while_an_answer_is_due() -> None:
    enumerator, look = begun(hybrid())
    for _ in range(3):
        enumerator.handle_source_change(hybrid())
        assert calls(enumerator) == []

    enumerator.handle_look(look, CallFailure(TransientDiscoveryError("no answer")))

    assert len(calls(enumerator)) == 1
    copy = enumerator.fork(CoordinatorContext(CoordinatorState()))
    copy.handle_source_change(hybrid())
    assert calls(copy) == []


def test_what_the_source_does_not_read_any_more_is_not_asked_again() -> None:
    enumerator, look = begun(hybrid())
    enumerator.handle_source_change(moved("elsewhere:9092"))
    (other,) = calls(enumerator)

    enumerator.handle_look(look, CallFailure(TransientDiscoveryError("no answer")))
    assert calls(enumerator) == []

    enumerator.handle_look(other.call, listed(orders="there"))  # type: ignore[arg-type]
    enumerator.handle_look(look, listed(orders="here"))

    assert known(enumerator) == {"main": {"orders": "there"}}
