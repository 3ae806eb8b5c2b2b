"""Where a split continues that one host has let go of and another one gets."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import IDENTITY, SplitId
from balanced_source.connectors.kafka import KafkaPartitionSplit
from balanced_source.coordinator.revocations import let_go, with_reported_positions
from balanced_source.coordinator.state import CoordinatorState, Revocation
from balanced_source.coordinator.tracker import SplitAssignmentTracker
from balanced_source.documents.report import HostReport

S: SplitId = ("c", "t", 0)
PARTITION = KafkaPartitionSplit(cluster="c", topic="t", partition=0, offset=10)


def revoking(*, since: int | None = 3, **changes: Any) -> CoordinatorState[KafkaPartitionSplit]:
    """Host 0 must let go of a split, which it was given at 10 by epoch `since`."""
    recorded = {} if since is None else {since: {S: 0}}
    return CoordinatorState(
        epoch=5,
        revoking={S: Revocation(host="0", epoch=5, split=PARTITION)},
        tracker=SplitAssignmentTracker(by_checkpoint=recorded),
        **changes,
    )


def report(epoch: int = 5, **changes: Any) -> dict[str, HostReport]:
    return {"0": HostReport(host="0", incarnation=1, epoch=epoch, **changes)}


@pytest.mark.parametrize("since", [None, 3, 5])
@pytest.mark.parametrize(
    ("changes", "continued"),
    [
        ({"positions": {S: 12}}, 12),
        ({"positions": {S: 7}}, 7),  # what it reads counts, also backwards
        ({"retained": {S: 12}}, 12),
        ({"retained": {S: 7}}, 10),  # what it retains may be older than what others have read
        ({}, 10),
    ],
)
def test_a_host_that_has_adopted_the_split_says_where_it_stopped(
    since: int | None, changes: dict[str, Any], continued: int
) -> None:
    _, (split,) = let_go(revoking(since=since), report(**changes), is_done=lambda _: True)

    assert split.offset == continued


@pytest.mark.parametrize(
    ("changes", "is_reclaimed", "continued"),
    [
        ({"positions": {S: 12}}, False, 12),
        ({"positions": {S: 7}}, False, 10),
        ({"retained": {S: 12}}, False, 10),
        ({"retained": {S: 12}}, True, 12),
    ],
)
def test_a_host_that_never_adopted_the_split_can_only_move_it_forward(
    changes: dict[str, Any], is_reclaimed: bool, continued: int
) -> None:
    state = revoking(since=5, reclaimed=frozenset({S} if is_reclaimed else ()))

    _, (split,) = let_go(state, report(4, **changes), is_done=lambda _: True)

    assert split.offset == continued


def test_positions_of_a_former_topic_do_not_count() -> None:
    state = revoking()
    renewed = replace(state.revoking[S], split=replace(PARTITION, topic_id="second"))
    former = report(positions={S: 12}, attributes={S: {IDENTITY: "first"}})

    _, (split,) = let_go(replace(state, revoking={S: renewed}), former, is_done=lambda _: True)

    assert split.offset == 10


def test_a_split_that_is_not_released_yet_stays_with_its_host() -> None:
    state = revoking()

    assert let_go(state, report(positions={S: 12}), is_done=lambda _: False) == (state, [])
    assert let_go(state, {}, is_done=lambda _: True) == (state, []), "no word of its host"


def test_a_released_split_with_an_owner_moves_there() -> None:
    state = revoking(owners={S: 1}, splits={S: PARTITION}, reclaimed=frozenset({S}))

    after, homeless = let_go(state, report(positions={S: 12}), is_done=lambda _: True)

    assert homeless == []
    assert (after.revoking, after.reclaimed) == ({}, frozenset())
    assert after.splits[S].offset == 12
    assert after.tracker.epoch_of(S) == 0, "the next owner has yet to adopt it"


def test_a_restarted_host_moves_a_revoked_split_without_releasing_it() -> None:
    after = with_reported_positions(revoking(), report(positions={S: 12}))

    assert after.revoking[S].split.offset == 12
    untouched = revoking()
    assert with_reported_positions(untouched, {}) is untouched
