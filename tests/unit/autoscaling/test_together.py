"""What several hosts have done at the same time."""

from dataclasses import replace

import pytest

from balanced_source_operator.controller.autoscaling.host_samples import together
from balanced_source_operator.controller.autoscaling.samples import Interval
from support.loads import STEADY

CALM = replace(STEADY, hottest=3.0, hottest_split=("c", "t", 1))
HOT = replace(STEADY, hottest=8.0, hottest_split=("c", "t", 2))


@pytest.mark.parametrize("hosts", [(CALM, HOT), (HOT, CALM)])
def test_the_hottest_split_of_all_hosts_is_the_hottest(hosts: tuple[Interval, ...]) -> None:
    found = together(hosts, 1.0)

    assert found is not None
    assert (found.hottest, found.hottest_split) == (8.0, ("c", "t", 2))
