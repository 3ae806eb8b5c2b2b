"""What is done for many splits at once says the same as one split after the other."""

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from balanced_source.api import ReaderInfo, SplitEnumeratorContext, SplitId
from balanced_source.connectors.kafka import KafkaPartitionSplit
from balanced_source.coordinator import (
    CoordinatorState,
    HostPhase,
    HostState,
    SplitAssignmentTracker,
)
from balanced_source.coordinator.context import CoordinatorContext
from balanced_source.coordinator.state import Revocation
from balanced_source.coordinator.view import AttributeTable, assignment_of
from balanced_source.documents.report import HostReport
from balanced_source.maps import changed, different, replaced
from support.world import partition_split

IDS: list[SplitId] = [("c", "t", partition) for partition in range(8)]
READERS = 6
State = CoordinatorState[KafkaPartitionSplit]
Context = CoordinatorContext[KafkaPartitionSplit]
PHASES = st.sampled_from((HostPhase.ACTIVE, HostPhase.EXPECTED, HostPhase.LOST))


@st.composite
def states(draw: st.DrawFn) -> State:
    """One to three hosts in any phase.

    Splits that are adopted, uncovered, on their way out or given back.
    """
    names = [str(number) for number in range(draw(st.integers(1, 3)))]
    owners = draw(st.dictionaries(st.sampled_from(IDS), st.integers(0, READERS - 1), min_size=1))
    uncovered = draw(st.sets(st.sampled_from(sorted(owners))))
    revoked = draw(st.sets(st.sampled_from(sorted(owners))))
    return CoordinatorState(
        epoch=5,
        parallelism=READERS,
        hosts={name: _host(draw, name) for name in names},
        owners=owners,
        splits={s: partition_split(s, 10) for s in owners},
        tracker=SplitAssignmentTracker(
            by_checkpoint={draw(st.integers(3, 5)): {s: owners[s] for s in uncovered}}
        ),
        revoking={
            s: Revocation(
                host=draw(st.sampled_from(names)),
                epoch=draw(st.integers(4, 6)),
                split=partition_split(s, 10),
            )
            for s in revoked
        },
        reclaimed=frozenset(draw(st.sets(st.sampled_from(sorted(owners))))),
    )


def _host(draw: st.DrawFn, name: str) -> HostState:
    phase = draw(PHASES)
    if phase is HostPhase.EXPECTED:
        return HostState()
    positions = draw(st.dictionaries(st.sampled_from(IDS), st.integers(0, 20)))
    report = HostReport(
        host=name, incarnation=1, sequence=1, epoch=draw(st.integers(2, 5)), positions=positions
    )
    return HostState(incarnation=1, phase=phase, report=report, addressed_epoch=1, known_from=1)


def context_of(state: State) -> Context:
    context: Context = CoordinatorContext(state)
    context.readers = {subtask: ReaderInfo(subtask_id=subtask) for subtask in range(READERS)}
    return context


@given(states(), st.lists(st.integers(0, READERS - 1), min_size=len(IDS), max_size=len(IDS)))
def test_moving_splits_equals_assigning_them_at_their_positions(
    state: State, wanted: list[int]
) -> None:
    owners = {s: wanted[int(s[2])] for s in state.owners}
    moved, given_anew = context_of(state), context_of(state)

    moved.move_splits(owners)
    SplitEnumeratorContext.move_splits(given_anew, owners)

    assert moved.turn.is_changed == given_anew.turn.is_changed == (owners != state.owners)
    assert document(moved.state) == document(given_anew.state)
    assert moved.state.positions(owners) == given_anew.state.positions(owners)
    remembered = replace(moved.state, splits=given_anew.state.splits)
    assert {s: replace(r, split=r.split.at(0)) for s, r in remembered.revoking.items()} == {
        s: replace(r, split=r.split.at(0)) for s, r in given_anew.state.revoking.items()
    }
    assert replace(remembered, revoking={}) == replace(given_anew.state, revoking={})


def document(state: State) -> object:
    return assignment_of(replace(state, tracker=state.tracker.on_checkpoint(6)), {})


@given(states())
def test_positions_of_many_are_those_of_each(state: State) -> None:
    assert state.positions(state.owners) == {s: state.position(s) for s in state.owners}
    assert state.splits_now(state.owners) == {s: state.split(s) for s in state.owners}


SPLITS = st.dictionaries(st.sampled_from(IDS), st.sampled_from([None, 7, 9]))


@given(st.lists(SPLITS, min_size=1, max_size=5))
def test_attributes_follow_the_splits(versions: list[dict[SplitId, int | None]]) -> None:
    table = AttributeTable()
    for version in versions:
        splits = {s: partition_split(s, 0, stop=stop) for s, stop in version.items()}
        assert table.of(splits) == {s: x.attributes() for s, x in splits.items() if x.attributes()}
        assert table.of(dict(splits)) is table.of(splits), (
            "nothing is different, so it is the same object"
        )


@given(
    st.dictionaries(st.integers(0, 9), st.integers()),
    st.dictionaries(st.integers(0, 9), st.integers()),
)
def test_a_changed_map_leaves_the_one_before_alone(
    before: Mapping[int, int], added: Mapping[int, int]
) -> None:
    kept = dict(before)

    assert changed(before, added=added, dropped=(1, 2, 99)) == {
        **{k: v for k, v in kept.items() if k not in (1, 2)},
        **added,
    }
    assert before == kept


MAPS = st.dictionaries(st.integers(0, 9), st.none() | st.integers(0, 3))


@given(MAPS, MAPS)
def test_the_difference_of_two_maps(
    before: dict[int, int | None], after: dict[int, int | None]
) -> None:
    changes = {k: v for k, v in after.items() if k not in before or before[k] != v}

    assert dict(different(before, after)) == dict(replaced(before, after)) == changes
