"""Which driver of a host is its newest one, and since when the operator knows of it."""

from itertools import permutations
from typing import Any

import pytest

from balanced_source_operator.controller.driver_starts import driver_start, starts_of
from support.builders import driver_pod, spark_application

FIRST = driver_pod(uid="a", creationTimestamp="2026-01-01T00:00:00Z")
SECOND = driver_pod(uid="b", creationTimestamp="2026-01-01T00:05:00Z")
THIRD = driver_pod(phase="Failed", uid="c", creationTimestamp="2026-01-01T00:09:00Z")
STARTED_AT = 1_767_225_600.0
"""When the first one was created."""


@pytest.mark.parametrize("pods", list(permutations([FIRST, SECOND, THIRD])))
def test_the_newest_driver_that_lives_counts_in_whatever_order_pods_are_listed(
    pods: tuple[dict[str, Any], ...],
) -> None:
    found = driver_start([spark_application()], pods, before=None, now=100.0)

    assert found is not None
    assert (found.uid, found.pod) == ("b", "orders-1-driver")
    assert (found.created_at, found.seen_at) == (STARTED_AT + 300, 100.0)


def test_a_driver_was_seen_when_it_was_seen_first() -> None:
    before = driver_start([spark_application()], [FIRST], before=None, now=100.0)

    assert driver_start([spark_application()], [FIRST], before=before, now=200.0) is before
    after = driver_start([spark_application()], [FIRST, SECOND], before=before, now=200.0)
    assert after is not None
    assert (after.uid, after.seen_at) == ("b", 200.0)


def test_each_host_has_drivers_of_its_own_and_one_without_any_is_left_out() -> None:
    hosts = {str(number): [spark_application(f"orders-{number}")] for number in range(3)}
    pods = [driver_pod("orders-0", uid="a"), driver_pod("orders-2", uid="b")]
    before = starts_of(hosts, pods, before={}, now=100.0)
    assert {host: start.uid for host, start in before.items()} == {"0": "a", "2": "b"}

    pods[0] = driver_pod("orders-0", uid="c")
    after = starts_of(hosts, pods, before=before, now=200.0)
    assert {host: (start.uid, start.seen_at) for host, start in after.items()} == {
        "0": ("c", 200.0),
        "2": ("b", 100.0),
    }
