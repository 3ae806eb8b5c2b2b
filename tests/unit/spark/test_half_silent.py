"""Clusters of which one answers in part, or not at all: which splits that concerns."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source.errors import TransientDiscoveryError
from balanced_source.host.ends import SplitEnd
from balanced_source_spark.ends import Ends

WHOLE: tuple[SplitId, ...] = (("whole", "t", 0), ("whole", "t", 1))
HALF: tuple[SplitId, ...] = (("half", "t", 0), ("half", "t", 1))


class AtOnce:
    """A pool whose work is done when it is handed in."""

    def submit(self, work: Callable[..., Any], *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(*args))
        except TransientDiscoveryError as error:
            future.set_exception(error)
        return future

    def shutdown(self, **_: object) -> None:
        """Nothing is left."""


class Clusters:
    """Two clusters; `silent` splits get no answer."""

    def __init__(self) -> None:
        self.silent: set[SplitId] = set()
        self.asked: list[str] = []
        self.waits: list[int] = []
        self.ends = Ends(self._ask, fresh=3600.0, retry=0.0)
        self.ends.close()
        pool: Any = AtOnce()
        self.ends._pool = pool

    def _ask(self, scope: str, split_ids: Collection[SplitId]) -> Mapping[SplitId, SplitEnd]:
        self.asked.append(scope)
        answers = {s: SplitEnd(end=7) for s in split_ids if s not in self.silent}
        if len(answers) < len(split_ids):
            raise TransientDiscoveryError("no answer", scope=scope, answers=answers)
        return answers

    def note_waits(self) -> None:
        def wait(futures: Iterable[object], _: float) -> None:
            self.waits.append(len(list(futures)))

        waits: Any = wait
        self.ends._wait = waits  # type: ignore[method-assign]


@pytest.fixture(name="clusters")
def fixture_clusters() -> Iterator[Clusters]:
    made = Clusters()
    yield made
    made.ends.close()


def test_only_the_splits_without_an_answer_are_silent(clusters: Clusters) -> None:
    clusters.silent = {HALF[1]}

    known = clusters.ends.get([*WHOLE, *HALF])

    assert known.keys() == {*WHOLE, HALF[0]}
    assert clusters.ends.silent == clusters.ends.mute == {HALF[1]}
    assert clusters.ends.deleted == frozenset()


def test_all_splits_of_a_cluster_without_any_answer_are_silent(clusters: Clusters) -> None:
    clusters.silent = set(HALF)

    clusters.ends.get([*HALF, *WHOLE])

    assert clusters.ends.silent == set(HALF)


def test_a_cluster_that_has_answered_is_asked_for_new_splits_only(clusters: Clusters) -> None:
    """Those that stayed silent are asked for with the next round."""
    clusters.silent = {HALF[1]}
    clusters.ends.get(HALF)
    clusters.ends.get(HALF)
    assert clusters.asked == ["half"]

    clusters.ends.get([*HALF, ("half", "t", 2)])

    assert clusters.asked == ["half", "half"]


def test_a_cluster_that_did_not_answer_is_asked_again_and_not_waited_for(
    clusters: Clusters,
) -> None:
    """It would cost its patience at each look."""
    clusters.silent = set(HALF)
    clusters.note_waits()

    for _ in range(2):
        clusters.ends.get([*HALF, *WHOLE])

    assert clusters.asked == ["half", "whole", "half"]
    assert clusters.waits == [2, 0]


def test_a_cluster_that_is_taken_out_takes_its_silence_along(clusters: Clusters) -> None:
    clusters.silent = {HALF[1], WHOLE[1]}
    clusters.ends.get([*HALF, *WHOLE])
    assert clusters.ends.silent == {HALF[1], WHOLE[1]}

    clusters.ends.get(WHOLE)

    assert clusters.ends.silent == {WHOLE[1]}
