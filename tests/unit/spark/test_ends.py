"""Ends of splits: answers of some clusters, refusals of others."""

from collections.abc import Iterable, Mapping

import pytest

from balanced_source.api import SplitId
from balanced_source.errors import DiscoveryError
from balanced_source_spark.ends import Ends

A, B = ("a", "t", 0), ("b", "t", 0)


class Clusters:
    """`b` refuses a number of times."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals

    def __call__(self, scope: str, split_ids: Iterable[SplitId]) -> Mapping[SplitId, int]:
        if scope == "b" and self.refusals > 0:
            self.refusals -= 1
            raise DiscoveryError("not now", scope=scope)
        return dict.fromkeys(split_ids, 7)


def test_a_cluster_that_does_not_answer_does_not_hold_others_back() -> None:
    assert Ends(Clusters(refusals=1)).get([A, B]) == {A: 7}


def test_a_query_that_ends_by_itself_waits_for_all_ends() -> None:
    assert Ends(Clusters(refusals=3)).get_all([A, B], timeout=30) == {A: 7, B: 7}


def test_and_says_so_when_they_do_not_come() -> None:
    with pytest.raises(DiscoveryError, match="1 splits unknown"):
        Ends(Clusters(refusals=1_000_000)).get_all([A, B], timeout=0.05)
