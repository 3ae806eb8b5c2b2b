"""An assignment says whether splits of its source come to an end, for tasks that check it."""

import pytest

from balanced_source.connectors.kafka import KafkaSource
from support.stage import Stage, bounded_source
from support.world import kafka_source


@pytest.mark.parametrize(
    ("source", "ends"), [(kafka_source("c"), False), (bounded_source("c"), True)]
)
def test_an_assignment_says_whether_splits_end(source: KafkaSource, *, ends: bool) -> None:
    stage = Stage(readers=2, hosts=1, source=source).topic("t", 2, begin=0).running()
    assert stage.assignment.has_ending_splits is ends
