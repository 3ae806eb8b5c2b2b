"""When clusters are asked for the ends of splits, and when people are told that one is silent."""

import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pytest

from balanced_source.api import Problem, SplitId
from balanced_source.errors import DiscoveryError
from balanced_source.host.ends import SplitEnd
from balanced_source_spark import ends as module
from balanced_source_spark.ends import FORGET, TELL_EVERY, Ends

A, B, C = ("a", "t", 0), ("a", "t", 1), ("b", "t", 0)


class Clock:
    """Stands in for the module `time`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        time.sleep(0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


class Cluster:
    """Answers for all splits but the absent ones, or fails."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[SplitId]]] = []
        self.absent: set[SplitId] = set()
        self.error: DiscoveryError | None = None
        self.told: list[tuple[str, str | None]] = []
        self.ends = Ends(self.ask, retry=5.0, fresh=2.0, gone=30.0, lasts=10.0, tell=self.tell)

    def ask(self, scope: str, split_ids: Iterable[SplitId]) -> Mapping[SplitId, SplitEnd]:
        listed = list(split_ids)
        self.asked.append((scope, listed))
        if self.error is not None:
            raise self.error
        return {s: SplitEnd(end=7) for s in listed if s not in self.absent}

    def tell(self, scope: str, problem: Problem | None) -> None:
        self.told.append((scope, None if problem is None else str(problem.reason)))

    def get(self, *split_ids: SplitId) -> Collection[SplitId]:
        return self.ends.get(split_ids).keys()


def refusal(reason: str, **more: Any) -> DiscoveryError:
    return DiscoveryError("no answer", scope="a", reason=reason, **more)


def test_a_cluster_is_asked_again_when_its_answers_are_old(clock: Clock) -> None:
    cluster = Cluster()
    for now in (0.0, 1.9, 2.0, 3.9, 4.0):
        clock.now = now
        assert cluster.get(A) == {A}

    assert len(cluster.asked) == 3


def test_a_split_that_was_just_assigned_is_asked_for_at_once(clock: Clock) -> None:
    cluster = Cluster()
    cluster.get(A)

    clock.now += 0.1
    assert cluster.get(A, B) == {A, B}
    assert cluster.asked[-1] == ("a", [A, B])


def test_a_split_without_an_answer_is_not_asked_for_all_the_time(clock: Clock) -> None:
    cluster = Cluster()
    cluster.error = refusal("NoLeader", answers={A: SplitEnd(end=7)})
    assert cluster.get(A, B) == {A}
    assert cluster.ends.silent == {B}

    clock.now += 1.9
    cluster.get(A, B)
    assert len(cluster.asked) == 1
    clock.now += 0.1
    cluster.get(A, B)
    assert len(cluster.asked) == 2


def test_a_cluster_that_failed_is_asked_again_after_a_pause(clock: Clock) -> None:
    cluster = Cluster()
    cluster.error = refusal("Down")
    for _ in range(11):
        cluster.get(A, C)
        wait_for_answers(cluster)
        clock.now += 1.0

    assert [scope for scope, _ in cluster.asked if scope == "a"] == ["a"] * 3
    assert cluster.ends.silent == cluster.ends.mute == {A, C}


def wait_for_answers(cluster: Cluster) -> None:
    """A failed cluster is asked without being waited for: the next look takes its answer."""
    for _, future in list(cluster.ends._pending.values()):
        future.exception(20)
    cluster.ends._collect()


@pytest.mark.parametrize(("waited", "is_deleted"), [(29.9, False), (30.0, True)])
def test_a_split_is_deleted_when_its_cluster_has_left_it_out_for_a_while(
    clock: Clock, waited: float, *, is_deleted: bool
) -> None:
    cluster = Cluster()
    cluster.absent = {B}
    cluster.get(A, B, C)

    clock.now += waited
    assert cluster.ends.deleted == ({B} if is_deleted else set())
    cluster.get(A, B, C)
    assert cluster.ends.deleted == ({B} if is_deleted else set()), "it counts from the first time"
    assert cluster.ends.mute == set()
    cluster.absent = set()
    clock.now += 2.0
    cluster.get(A, B, C)
    assert cluster.ends.deleted == set()


def test_silence_is_told_when_it_lasts_and_again_now_and_then(clock: Clock) -> None:
    """Each change of the reason is told at once."""
    cluster = Cluster()
    cluster.error = refusal("Down")

    def look(seconds: float) -> list[tuple[str, str | None]]:
        clock.now += seconds
        cluster.get(A)
        wait_for_answers(cluster)
        told, cluster.told = cluster.told, []
        return told

    assert look(0.0) == []
    assert look(9.9) == []
    assert look(5.0) == [("a", "Down")]
    assert look(5.0) == []
    cluster.error = refusal("Refused")
    assert look(5.0) == [("a", "Refused")]
    assert look(TELL_EVERY - 0.1) == []
    assert look(5.0) == [("a", "Refused")]
    cluster.error = None
    assert look(5.0) == [("a", None)]
    assert look(5.0) == []
    cluster.error = refusal("Down")
    assert look(5.0) == [], "it has just begun"


def test_a_cluster_that_left_the_source_is_forgotten(clock: Clock) -> None:
    cluster = Cluster()
    cluster.error = refusal("Down")
    for _ in range(3):
        cluster.get(A, C)
        wait_for_answers(cluster)
        clock.now += 10.0
    assert {scope for scope, _ in cluster.told} == {"a", "b"}
    cluster.told.clear()

    cluster.get(C)
    wait_for_answers(cluster)

    assert cluster.told == [("a", None)]
    assert cluster.ends.silent == {C}
    cluster.error = None
    assert cluster.get(A, C) == {A}, "asked at once, and not after the pause of a failure"


def test_ends_of_former_splits_are_forgotten_when_there_are_many(clock: Clock) -> None:
    cluster = Cluster()
    former: list[SplitId] = [("a", "t", number) for number in range(int(2 * FORGET))]
    cluster.get(*former)

    clock.now += 2.0
    assert cluster.get(A, B) == set(former), "few: nothing is copied"
    clock.now += 2.0
    assert cluster.get(A) == {A}


@pytest.mark.usefixtures("clock")
def test_a_query_that_ends_by_itself_waits_for_ends_until_its_deadline() -> None:
    cluster = Cluster()
    cluster.error = refusal("Down")

    with pytest.raises(
        DiscoveryError, match=r"ends of 2 splits, such as .*, are unknown after 20 s: no"
    ):
        cluster.ends.get_all([A, B], timeout=20.0)


def test_a_split_that_left_is_not_silent_any_more(clock: Clock) -> None:
    """Its cluster did not answer for it, and fails now as a whole."""
    cluster = Cluster()
    cluster.error = refusal("NoLeader", answers={A: SplitEnd(end=7)})
    cluster.get(A, B)
    assert cluster.ends.silent == {B}

    cluster.error = refusal("Down")
    clock.now += 2.0
    cluster.get(A)

    assert cluster.ends.silent == {A}
