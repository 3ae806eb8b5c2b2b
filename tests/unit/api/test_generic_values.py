"""Values that a connector makes may name their type, in every version of Python."""

from balanced_source.api import ReaderInfo, SplitsAddition, SplitsAssignment, SplitsRemoval
from balanced_source.connectors.kafka import KafkaPartitionSplit
from balanced_source.connectors.pull import Page


def test_a_value_may_be_made_with_its_type() -> None:
    split = KafkaPartitionSplit(cluster="c", topic="t", partition=0, offset=1)

    assert SplitsAssignment[KafkaPartitionSplit](assignment={0: [split]}).assignment == {0: [split]}
    assert SplitsAddition[KafkaPartitionSplit]((split,)) == SplitsAddition((split,))
    assert SplitsRemoval[KafkaPartitionSplit]((split,)).splits == (split,)
    assert ReaderInfo[KafkaPartitionSplit](subtask_id=1).subtask_id == 1
    assert hash(Page[KafkaPartitionSplit](splits=(split,))) is not None
