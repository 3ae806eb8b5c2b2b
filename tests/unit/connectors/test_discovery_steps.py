"""Single steps of an enumerator that discovers its splits: what it asks, keeps and says."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import STOP, AsyncCall, ReaderInfo, SourceSplit, SplitId
from balanced_source.connectors.discovery import (
    Alarm,
    Discover,
    Discovered,
    DiscoveryState,
    some,
)
from balanced_source.connectors.discovery.reported import take_reported, without_guesses
from balanced_source.connectors.discovery.values import (
    Retained,
    is_read,
    rest_of,
    some_rests,
)
from balanced_source.connectors.kafka import KafkaPartitionSplit, KafkaSource, TopicList
from balanced_source.coordinator import CoordinatorState, ExecuteCall, HostState, ReportFact
from balanced_source.coordinator.context import CoordinatorContext
from balanced_source.documents.report import HostReport
from balanced_source.errors import ContractViolationError
from support.pull_source import Numbers
from support.world import kafka_source, partition_split

CLUSTERS = ("c", "d", "e", "f", "g", "h")
RETENTION = 100.0


def table(*split_ids: SplitId) -> dict[SplitId, KafkaPartitionSplit]:
    return {s: partition_split(s) for s in split_ids}


class Step:
    """An enumerator whose readers hold some splits; only what the last step has caused is shown."""

    def __init__(
        self,
        source: KafkaSource,
        state: DiscoveryState[KafkaPartitionSplit] | None = None,
        *,
        owners: Mapping[SplitId, int] | None = None,
        retained: frozenset[SplitId] = frozenset(),
    ) -> None:
        owners = owners or {}
        report = HostReport(incarnation=1, positions=dict.fromkeys(owners, 7))
        self.context: CoordinatorContext[Any] = CoordinatorContext(
            CoordinatorState(
                parallelism=2,
                hosts={"0": HostState(report=report, known_from=1)},
                owners=owners,
                splits=table(*owners),
                retained=retained,
            )
        )
        self.context.turn.now = 1000.0
        self.enumerator: Any = source.restore_enumerator(self.context, state or DiscoveryState())
        self.enumerator.start()
        self.clear()

    def clear(self) -> None:
        self.context.turn.effects.clear()

    def registers(self, *readers: ReaderInfo[KafkaPartitionSplit]) -> None:
        self.context.set_readers({reader.subtask_id: reader for reader in readers})
        self.enumerator.add_readers([reader.subtask_id for reader in readers])

    @property
    def state(self) -> DiscoveryState[KafkaPartitionSplit]:
        found: DiscoveryState[KafkaPartitionSplit] = self.enumerator.snapshot_state()
        return found

    def calls(self, kind: type[AsyncCall]) -> list[tuple[Any, float]]:
        """Calls of a kind, and in how many seconds they are due."""
        effects = [e for e in self.context.turn.effects if isinstance(e, ExecuteCall)]
        return [(e.call, e.delay) for e in effects if isinstance(e.call, kind)]

    @property
    def scopes_asked(self) -> list[str]:
        return [call.scope for call, delay in self.calls(Discover) if delay == 0]

    @property
    def sentences(self) -> list[str]:
        return [e.message for e in self.context.turn.effects if isinstance(e, ReportFact)]


A, B, C = ("c", "t", 0), ("c", "t", 1), ("c", "u", 0)


def test_scopes_of_revoked_splits_are_discovered_again_in_their_order() -> None:
    """They may exist again as something else, which waited for its reader to let go."""
    step = Step(kafka_source(*CLUSTERS))

    step.enumerator.handle_revoked([partition_split((c, "t", 0)) for c in reversed(CLUSTERS)])

    assert step.scopes_asked == list(CLUSTERS)


def test_only_scopes_of_the_source_are_discovered_again() -> None:
    step = Step(kafka_source("c"))

    step.enumerator.handle_revoked([partition_split(("gone", "t", 0))])

    assert step.scopes_asked == []


def test_a_revoked_split_that_is_kept_gets_its_last_position() -> None:
    kept = {A: Retained(split=partition_split(A, 5), until=2000.0)}
    step = Step(kafka_source(retention=RETENTION), DiscoveryState(retained=kept))
    step.enumerator.state = replace(step.state, unassigned=table(B))

    step.enumerator.handle_revoked([partition_split(A, 9), partition_split(B, 8)])

    assert step.state.retained == {A: Retained(split=partition_split(A, 9), until=2000.0)}
    assert step.state.unassigned == {B: partition_split(B, 8)}
    assert step.scopes_asked == [], "both are known to exist, or to be unwanted"


@pytest.mark.parametrize("retention", [0.0, RETENTION])
def test_splits_that_are_not_subscribed_any_more_leave_alone(retention: float) -> None:
    """Only their positions are kept, and only for as long as the user said."""
    source = kafka_source(retention=retention)
    state = DiscoveryState(unassigned=table(A, C), preferred={A: 0, C: 1})
    step = Step(source, state, owners={B: 0, ("c", "u", 1): 1})

    step.enumerator.handle_source_change(replace(source, subscriber=TopicList(("t",))))

    gone = {C: partition_split(C, 5), ("c", "u", 1): partition_split(("c", "u", 1), 7)}
    kept = {s: Retained(split=x, until=1100.0) for s, x in gone.items()} if retention else {}
    assert step.context.current_assignments() == {B: 0}
    assert (step.state.unassigned.keys(), step.state.preferred) == ({A}, {A: 0})
    assert step.state.retained == kept
    assert step.context.state.retained == ({("c", "u", 1)} if retention else set())
    assert "2 splits not subscribed any more: c/u/0, c/u/1" in step.sentences
    assert {delay for _, delay in step.calls(Alarm)} == ({RETENTION} if retention else set())


def test_the_first_deadline_of_kept_positions_sets_the_alarm() -> None:
    kept = {
        s: Retained(split=partition_split(s), until=until)
        for s, until in ((A, 1050.0), (B, 1030.0))
    }
    state = DiscoveryState(
        retained=kept, discovered=frozenset({"c", "gone"}), removed={"gone": 1070.0}
    )
    step = Step(kafka_source(retention=RETENTION), state)

    step.registers(ReaderInfo(subtask_id=0))

    assert [delay for _, delay in step.calls(Alarm)] == [30.0]


def test_positions_are_dropped_when_their_time_is_over() -> None:
    kept = {
        s: Retained(split=partition_split(s), until=until)
        for s, until in ((A, 1000.0), (B, 1030.0))
    }
    step = Step(
        kafka_source(retention=RETENTION, subscriber=TopicList(("x",))),
        DiscoveryState(retained=kept),
        retained=frozenset({A, B}),
    )

    step.enumerator.handle_alarm(Alarm(), None)

    assert step.state.retained.keys() == step.context.state.retained == {B}
    assert step.sentences == ["positions of 1 removed split dropped: c/t/0"]
    assert [delay for _, delay in step.calls(Alarm)] == [30.0]


def test_an_alarm_before_the_deadline_drops_nothing() -> None:
    kept = {A: Retained(split=partition_split(A), until=1000.1)}
    step = Step(kafka_source(retention=RETENTION), DiscoveryState(retained=kept))

    step.enumerator.handle_alarm(Alarm(), None)

    assert step.state.retained == kept
    assert step.sentences == []


def test_a_reader_that_reports_an_unsubscribed_split_sets_the_alarm() -> None:
    step = Step(kafka_source(retention=RETENTION, subscriber=TopicList(("t",))))

    step.registers(
        ReaderInfo(subtask_id=0, reported_splits=(partition_split(C, 9),), is_first_report=True)
    )

    assert step.state.retained == {C: Retained(split=partition_split(C, 9), until=1100.0)}
    assert [delay for _, delay in step.calls(Alarm)] == [RETENTION]


def test_a_split_that_comes_back_unsubscribed_is_named() -> None:
    step = Step(kafka_source(subscriber=TopicList(("t",))), retained=frozenset({C, A}))

    step.enumerator.add_splits_back([partition_split(C, 9), partition_split(A, 9)], 1)

    assert step.state.unassigned == {A: partition_split(A, 9)}
    assert step.state.preferred == {A: 1}
    assert step.sentences == ["1 split of reader 1 not subscribed: c/u/0"]
    assert step.context.state.retained == {A}


def test_a_split_that_is_given_back_and_unsubscribed_is_kept_if_the_user_wants() -> None:
    step = Step(kafka_source(subscriber=TopicList(("t",)), retention=RETENTION))

    step.enumerator.add_splits_back([partition_split(C, 9)], 1)

    assert step.state.retained == {C: Retained(split=partition_split(C, 9), until=1100.0)}
    assert [delay for _, delay in step.calls(Alarm)] == [RETENTION]


@pytest.mark.parametrize("topic_id", ["first", "second"])
def test_a_guess_goes_only_if_the_readers_hold_another_split(topic_id: str) -> None:
    """The topic that was deleted and created again has another id."""
    state = DiscoveryState(
        unassigned={A: partition_split(A, 5, topic_id="first")}, preferred={A: 0}
    )
    held = ReaderInfo(subtask_id=0, reported_splits=(partition_split(A, 9, topic_id=topic_id),))

    after, dropped = without_guesses(state, [held], (), kafka_source())

    assert after.unassigned.keys() == ({A} if topic_id == "first" else set())
    assert after.preferred == ({A: 0} if topic_id == "first" else {})
    assert dropped == frozenset(), "the readers report where to continue"


def test_only_guesses_of_scopes_that_readers_have_seen_go() -> None:
    other: SplitId = ("d", "t", 0)
    state = DiscoveryState(
        unassigned=table(A, B, C, other), preferred={B: 0, C: 0, other: 0}, discovered=frozenset()
    )
    held = ReaderInfo(subtask_id=0, retained_splits=(partition_split(("c", "v", 0)),))

    after, dropped = without_guesses(state, [held], {B, other}, kafka_source("c", "d"))

    assert after.unassigned.keys() == {C, other}, "C was a reader's, and no guess"
    assert dropped == {A, B}


def test_an_owned_split_stays_what_it_is() -> None:
    reader = ReaderInfo(
        subtask_id=0, reported_splits=(partition_split(A, 9),), is_first_report=True
    )

    after, unwanted = take_reported(DiscoveryState(), [reader], {A}, kafka_source(), until=0.0)

    assert (after.unassigned, unwanted) == ({}, [])
    assert after.discovered == {"c"}


def test_a_kept_position_only_moves_forward() -> None:
    kept = {
        A: Retained(split=partition_split(A, 7), until=5.0),
        B: Retained(split=partition_split(B, 7), until=5.0),
    }
    reader = ReaderInfo(
        subtask_id=0, retained_splits=(partition_split(A, 9), partition_split(B, 6))
    )
    state = DiscoveryState(retained=kept)

    for source in (kafka_source(), kafka_source(subscriber=TopicList(("x",)), retention=1.0)):
        after, _ = take_reported(state, [reader], {}, source, until=99.0)

        assert after.retained == {
            A: Retained(split=partition_split(A, 9), until=5.0),
            B: Retained(split=partition_split(B, 7), until=5.0),
        }
        assert after.discovered == {"c"}, "kept positions prove that the scope was discovered"


def test_a_discovery_that_a_newer_one_has_overtaken_is_ignored() -> None:
    step = Step(kafka_source("c"))
    source, answer = step.enumerator.source, Discovered(split_ids=frozenset({A}))
    step.enumerator.handle_revoked([partition_split(B)])

    step.enumerator.handle_discovery(source.discover("c", 1), answer)
    assert step.enumerator.pending_splits() == 0
    step.enumerator.handle_discovery(source.discover("c", 2), answer)
    assert step.enumerator.pending_splits() == 1


def test_missing_splits_are_looked_for_again_soon() -> None:
    """One discovery that lacks a split proves nothing."""
    step = Step(kafka_source("c", discovery_interval=300.0), owners={A: 0})

    step.enumerator.handle_discovery(step.enumerator.source.discover("c", 1), _listed())
    ((call, delay),) = step.calls(Discover)
    assert delay < 300
    assert step.context.current_assignments() == {A: 0}

    step.clear()
    step.enumerator.handle_discovery(call, _listed())
    assert step.context.current_assignments() == {}
    assert [delay for _, delay in step.calls(Discover)] == [300.0]


def _listed(*split_ids: SplitId) -> Discovered:
    return Discovered(split_ids=frozenset(split_ids))


def test_equal_states_give_equal_documents() -> None:
    """A state is stored again only if its document differs."""
    source = kafka_source()
    one = DiscoveryState(
        unassigned=table(A, B),
        discovered=frozenset(CLUSTERS),
        removed={"y": 1.0, "x": 2.0},
        preferred={A: 0, B: 1},
    )
    other = replace(
        one, unassigned=table(B, A), removed={"x": 2.0, "y": 1.0}, preferred={B: 1, A: 0}
    )

    texts = {json.dumps(source.encode_state(state)) for state in (one, other)}

    assert len(texts) == 1
    assert source.decode_state(source.state_version, json.loads(texts.pop())) == one


def test_a_cluster_that_is_not_part_of_the_source_is_a_mistake() -> None:
    with pytest.raises(ContractViolationError, match="cluster 'x' is not part of the source"):
        kafka_source("c").discover("x", 1)


def test_an_end_that_was_told_before_leaves_the_state_as_it_is() -> None:
    """The same object is not stored again."""
    step = Step(kafka_source(), DiscoveryState(finished=frozenset({A})), owners={A: 0, B: 0})
    before = step.state

    step.enumerator.handle_finished([A])
    assert step.state is before
    step.enumerator.handle_finished([A, B])
    assert step.state.finished == {A, B}


def test_start_positions_are_looked_up_again_when_readers_hold_splits_of_their_scopes() -> None:
    """A reader proves that the first discovery is over: the start option counts no more."""
    step = Step(kafka_source(*CLUSTERS))
    for scope in CLUSTERS:
        call = step.enumerator.source.discover(scope, 1)
        step.enumerator.handle_discovery(call, _listed((scope, "t", 0)))
    step.clear()
    held = tuple(partition_split((scope, "u", 0)) for scope in CLUSTERS[1:])

    step.registers(ReaderInfo(subtask_id=0, reported_splits=held, is_first_report=True))

    asked = step.scopes_asked
    assert asked[: len(held)] == list(CLUSTERS[1:])
    assert "c" not in asked


@pytest.mark.parametrize(
    ("offset", "stop", "rest"),
    [(0, 1, (0, 1)), (5, 9, (5, 9)), (9, 9, None), (9, None, None)],
)
def test_the_unread_rest_of_a_split_with_a_stop(
    offset: int, stop: int | None, rest: tuple[int, int] | None
) -> None:
    one = replace(partition_split(A, offset), stopping_offset=stop)

    assert rest_of(one) == rest
    assert is_read(one) is (stop is not None and rest is None)


def test_a_split_with_a_stop_of_which_nothing_was_read_is_unread_from_its_beginning() -> None:
    nothing: Any = None

    assert rest_of(Numbers(name="list-0", number=nothing, stop=3)) == (0, 3)


@pytest.mark.parametrize(("position", "stop"), [("7", 9), (7, "9"), ("7", "9")])
def test_positions_that_cannot_be_compared_are_not_guessed_at(position: Any, stop: Any) -> None:
    """They come from connectors of other packages."""

    class Odd(SourceSplit):
        split_id = A
        position = "7"

        def at(self, _: Any) -> "Odd":
            return self

        def attributes(self) -> dict[str, Any]:
            return {STOP: stop}

    Odd.position = position

    assert rest_of(Odd()) is None


def test_unread_rests_are_named_for_people() -> None:
    splits = [replace(partition_split(("c", "t", n), 0), stopping_offset=n) for n in range(6)]

    assert some_rests(splits[1:2]) == "1 split, c/t/1 (0 to 1)"
    assert some_rests(reversed(splits[:4])) == (
        "3 splits, c/t/1 (0 to 1), c/t/2 (0 to 2), c/t/3 (0 to 3)"
    )
    assert some_rests(splits).endswith("c/t/3 (0 to 3) and 2 more")
    assert some([A, B, C]) == "c/t/0, c/t/1, c/u/0"
    assert some([A, B, C, A]) == "c/t/0, c/t/1, c/u/0 and 1 more"


def test_splits_that_are_read_to_their_end_are_no_load() -> None:
    """A new split goes to the reader that has least left to read."""
    state = DiscoveryState(
        unassigned=table(C), finished=frozenset({A, B}), discovered=frozenset({"c"})
    )
    other: SplitId = ("c", "u", 1)
    step = Step(kafka_source("c"), state, owners={A: 0, B: 0, other: 1})
    step.registers(ReaderInfo(subtask_id=0), ReaderInfo(subtask_id=1))

    step.enumerator.handle_discovery(
        step.enumerator.source.discover("c", 1), _listed(A, B, C, other)
    )

    assert step.context.current_assignments() == {A: 0, B: 0, other: 1, C: 0}
