"""Ends of splits: answers of some clusters, refusals of others."""

import threading
from collections.abc import Iterable, Mapping
from types import SimpleNamespace

import pytest

from balanced_source.api import Problem, SplitId
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import DiscoveryError, TransientDiscoveryError
from balanced_source.host.ends import Look, SplitEnd
from balanced_source_spark.ends import Ends
from balanced_source_spark.options import Options
from balanced_source_spark.planner import StreamPlanner
from testbed.waiting import wait_until

A, B = ("a", "t", 0), ("b", "t", 0)
MORE: SplitId = ("a", "t", 1)


class Clusters:
    """`b` refuses a number of times; of `a`, the partitions in `silent` do not answer."""

    def __init__(self, refusals: int, silent: frozenset[SplitId] = frozenset()) -> None:
        self.refusals = refusals
        self.silent = silent

    def __call__(self, scope: str, split_ids: Iterable[SplitId]) -> Mapping[SplitId, int]:
        if scope == "b" and self.refusals > 0:
            self.refusals -= 1
            raise DiscoveryError("not now", scope=scope)
        answers = dict.fromkeys((s for s in split_ids if s not in self.silent), 7)
        if any(s in self.silent for s in split_ids):
            raise DiscoveryError(
                "partitions have no leader", scope=scope, reason="NoLeader", answers=answers
            )
        return answers


def test_a_cluster_that_does_not_answer_does_not_hold_others_back() -> None:
    assert Ends(Clusters(refusals=1)).get([A, B]) == {A: 7}


def test_many_silent_clusters_do_not_hold_up_one_that_answers() -> None:
    """Whatever the number of processors, which pools of threads are made for."""
    released, fine = threading.Event(), ("fine", "t", 0)

    def ask(scope: str, split_ids: Iterable[SplitId]) -> Mapping[SplitId, int]:
        if scope != "fine":
            released.wait(60)
        return dict.fromkeys(split_ids, 7)

    silent: list[SplitId] = [(f"silent-{number}", "t", 0) for number in range(100)]
    ends = Ends(ask, fresh=0.0)
    try:
        wait_until(lambda: fine in ends.get([*silent, fine], patience=0.05), 20, "an answer")
    finally:
        released.set()
        ends.close()


def test_a_query_that_ends_by_itself_waits_for_all_ends() -> None:
    assert Ends(Clusters(refusals=3), retry=0.0).get_all([A, B], timeout=30) == {A: 7, B: 7}


def test_it_looks_at_all_splits_at_once() -> None:
    """Not once for each split: a query of ten thousand would look ten thousand times."""
    asked: list[int] = []

    def ask(_: str, split_ids: Iterable[SplitId]) -> Mapping[SplitId, int]:
        asked.append(len(list(split_ids)))
        return dict.fromkeys(many, 7)

    many: list[SplitId] = [("a", "t", number) for number in range(50)]
    assert Ends(ask, fresh=0.0).get_all(many, timeout=30) == dict.fromkeys(many, 7)
    assert asked == [50]


def test_missing_executors_are_logged() -> None:
    with pytest.raises(
        DiscoveryError, match="ends of 1 split, such as b/t/0, are unknown after 0 s: not now"
    ):
        Ends(Clusters(refusals=1_000_000)).get_all([A, B], timeout=0.05)


@pytest.mark.scenario("D26")
def test_known_ends_of_a_silent_cluster_are_marked_old() -> None:
    """It is said to be silent until it answers, so that no micro-batch would wait for it."""
    clusters = Clusters(refusals=0)
    ends = Ends(clusters, retry=0.0, fresh=0.0)
    assert (ends.get([A, B]), ends.silent) == ({A: 7, B: 7}, frozenset())

    clusters.refusals = 2
    assert (ends.get([A, B]), ends.silent) == ({A: 7, B: 7}, {B})
    wait_until(lambda: ends.get([A, B]) and not ends.silent, 30, "b to answer")


def test_a_hanging_cluster_is_waited_for_once() -> None:
    """Patience is for clusters that answered last time.

    The answer of another one is taken when it comes.
    """
    answer, asked = threading.Event(), list[str]()

    def ask(scope: str, split_ids: Iterable[SplitId]) -> Mapping[SplitId, int]:
        asked.append(scope)
        if scope == "b" and not answer.wait(30):
            raise DiscoveryError("never", scope=scope)
        return dict.fromkeys(split_ids, len(asked))

    ends = Ends(ask, patience=0.5, fresh=0.0)
    for _ in range(3):
        assert ends.get([A, B]).keys() == {A}
    assert (asked.count("b"), ends.silent) == (1, {B})
    answer.set()
    wait_until(lambda: B in ends.get([A, B]), 30, "the answer to be taken")
    assert not ends.silent


def test_a_cluster_that_refuses_is_not_asked_all_the_time() -> None:
    clusters = Clusters(refusals=1_000_000)
    ends = Ends(clusters, retry=3600.0, fresh=0.0)
    for _ in range(5):
        ends.get([A, B])
    assert clusters.refusals == 999_999


def test_a_partition_that_does_not_answer_does_not_hold_back_its_cluster() -> None:
    """Its end is unknown until it answers; what was known of it is no reason to plan it."""
    clusters = Clusters(refusals=0)
    ends = Ends(clusters, fresh=0.0)
    assert (ends.get([A, MORE]), ends.silent) == ({A: 7, MORE: 7}, frozenset())

    clusters.silent = frozenset({MORE})
    assert (ends.get([A, MORE])[A], ends.silent) == (7, {MORE})
    clusters.silent = frozenset()
    assert (ends.get([A, MORE])[MORE], ends.silent) == (7, frozenset())


def test_a_partition_that_is_gone_is_not_planned_by_what_was_known_of_it() -> None:
    answers: dict[SplitId, int] = {A: 7}
    ends = Ends(lambda *_: dict(answers), fresh=0.0)
    ends.get([A])
    answers.clear()

    ends.get([A])
    assert ends.silent == {A}


def test_ends_of_unused_splits_are_forgotten() -> None:
    """Topics come and go for months; a cluster that is taken out is no one's problem either."""
    told: list[tuple[str, Problem | None]] = []
    clusters = Clusters(refusals=1)
    ends = Ends(clusters, fresh=0.0, lasts=0.0, tell=lambda *news: told.append(news))
    ends.get([B])
    many: list[SplitId] = [("a", "t", number) for number in range(100)]
    assert len(ends.get(many)) == 100

    assert ends.get([A]) == {A: 7}
    assert [(scope, problem is None) for scope, problem in told] == [("b", False), ("b", True)]


def test_lasting_silence_is_reported_once_and_cleared() -> None:
    told: list[tuple[str, Problem | None]] = []
    clusters = Clusters(refusals=0, silent=frozenset({MORE}))
    ends = Ends(clusters, fresh=0.0, lasts=0.0, tell=lambda *news: told.append(news))
    for _ in range(3):
        ends.get([A, MORE])
    clusters.silent = frozenset()
    for _ in range(3):
        ends.get([A, MORE])

    problem = Problem(reason="NoLeader", message="partitions have no leader", scope="a")
    assert told == [("a", problem), ("a", None)]


def test_a_leader_that_moves_is_not_a_problem() -> None:
    told: list[tuple[str, Problem | None]] = []
    ends = Ends(
        Clusters(refusals=0, silent=frozenset({A})),
        fresh=0.0,
        lasts=60.0,
        tell=lambda *news: told.append(news),
    )
    for _ in range(3):
        ends.get([A, B])

    assert told == []


@pytest.mark.parametrize(
    ("targets", "planned"), [(None, {A: 7, B: 2}), ({A: 7, B: 7}, {A: 7, B: 7})]
)
def test_a_silent_cluster_is_in_no_micro_batch(
    targets: dict[SplitId, int] | None, planned: dict[SplitId, int]
) -> None:
    """What is known of it would be waited for.

    A query that ends by itself waits rather than ending without it.
    """
    planner = StreamPlanner(Options())
    runtime = SimpleNamespace(newest_assignment=lambda **_: None)
    planner.__dict__.update(
        _ends=SimpleNamespace(silent=frozenset({B})), _runtime=runtime, _targets=targets
    )

    assert (
        planner._advanced(StreamOffset(positions={A: 0, B: 2}), Look(ends={A: 7, B: 7})).positions
        == planned
    )


def test_a_split_that_is_left_out_for_a_while_is_deleted_and_one_without_an_answer_is_not() -> None:
    """A later answer shows that it exists after all."""
    exists = {("c", "t", 0), ("c", "t", 1)}
    errors: list[DiscoveryError] = []

    def ask(_: str, split_ids: Iterable[SplitId]) -> Mapping[SplitId, SplitEnd]:
        if errors:
            raise errors[0]
        return {s: SplitEnd(end=1) for s in split_ids if s in exists}

    ends, asked = Ends(ask, fresh=0.0, gone=0.0, retry=0.0), [("c", "t", 0), ("c", "t", 1)]
    errors.append(
        DiscoveryError("t/1 has no leader", scope="c", answers={("c", "t", 0): SplitEnd(end=1)})
    )
    ends.get(asked)
    assert not ends.deleted
    errors.clear()
    exists.discard(("c", "t", 1))
    wait_until(
        lambda: (ends.get(asked), ends.deleted)[1] == {("c", "t", 1)},
        20,
        "it to be deleted",
        interval=0.01,
    )
    exists.add(("c", "t", 1))
    wait_until(lambda: (ends.get(asked), not ends.deleted)[1], 20, "it to be back", interval=0.01)
    ends.close()


def test_a_cluster_that_never_answers_is_told_of_and_named_when_all_ends_are_needed() -> None:
    """A client that hangs raises nothing."""
    answers, told = threading.Event(), dict[str, Problem | None]()

    def ask(_: str, split_ids: Iterable[SplitId]) -> Mapping[SplitId, SplitEnd]:
        assert answers.wait(20), "the test forgot to let the cluster answer"
        return dict.fromkeys(split_ids, SplitEnd(end=7))

    ends = Ends(ask, patience=0.0, lasts=0.0, hangs=0.0, tell=told.__setitem__)
    try:
        ends.get([A])
        problem = told["a"]
        assert problem is not None
        assert "a: the question where its splits end has no answer" in problem.message
        with pytest.raises(DiscoveryError, match="has no answer"):
            ends.get_all([A], timeout=0.0)
    finally:
        answers.set()
    wait_until(lambda: A in ends.get([A]), 20, "the answer")
    assert told["a"] is None, "it is over"


def test_a_cluster_that_is_taken_out_while_it_does_not_answer_is_forgotten() -> None:
    """Its question is still under way when no one asks for it any more."""
    asked, answers = list[str](), threading.Event()

    def ask(scope: str, split_ids: Iterable[SplitId]) -> Mapping[SplitId, SplitEnd]:
        asked.append(scope)
        if scope == "b":
            return dict.fromkeys(split_ids, SplitEnd(end=3))
        if len(asked) > 1:
            assert answers.wait(20), "the test forgot to let the cluster answer"
        raise TransientDiscoveryError("a is silent", scope="a")

    ends = Ends(ask, patience=5.0, retry=0.0, hangs=0.0)
    try:
        ends.get([A])  # it fails
        ends.get([A])  # it is asked again, and does not answer
        ends.get([B])
        assert ends.get([B])[B].end == 3
    finally:
        answers.set()


def test_splits_of_clusters_that_are_taken_out_are_forgotten() -> None:
    """A cluster that answers without its split may leave the source at the next moment."""
    ends = Ends(lambda *_: {}, fresh=0.0, gone=0.0)

    for day in range(50):
        split_id: SplitId = (f"day-{day}", "t", 0)
        ends.get([split_id])
        assert ends.deleted == {split_id}

    assert ends._absent.keys() == {("day-49", "t", 0)}
    assert ends._asked.keys() == ends._answered.keys() == ends._unanswered.keys() == {"day-49"}
    ends.close()


def test_the_problem_of_a_hung_cluster_ends_when_it_is_taken_out_and_is_told_when_it_is_back() -> (
    None
):
    answers, told = threading.Event(), dict[str, Problem | None]()

    def ask(scope: str, split_ids: Iterable[SplitId]) -> Mapping[SplitId, SplitEnd]:
        if scope == "a":
            assert answers.wait(20), "the test forgot to let the cluster answer"
        return dict.fromkeys(split_ids, SplitEnd(end=7))

    ends = Ends(ask, patience=0.0, lasts=0.0, hangs=0.0, tell=told.__setitem__)
    try:
        ends.get([A])
        assert told["a"] is not None
        ends.get([B])
        assert told["a"] is None
        ends.get([B])
        assert told["a"] is None
        ends.get([A])
        assert told["a"] is not None
    finally:
        answers.set()
