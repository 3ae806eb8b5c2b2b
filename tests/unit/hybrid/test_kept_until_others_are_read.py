"""Splits that only the Spark checkpoint keeps: those that were read last."""

from balanced_source.connectors.hybrid.state import HybridState
from balanced_source.connectors.pull import PullState
from support.hybrid_world import two_parts
from unit.hybrid.test_enumerator import enumerator_of, present, with_readers


def test_splits_that_were_read_before_are_let_go_when_others_are_read() -> None:
    """Else a checkpoint would name each split that was ever read."""
    source = two_parts(5, 5)
    enumerator = enumerator_of(
        source, HybridState(part=source.names[0], state=PullState(is_listed=True))
    )
    first, second = present(enumerator, 0), present(enumerator, 1)
    held = {split.split_id: split for split in (first, second)}
    context = with_readers(enumerator, owners=dict.fromkeys(held, 0), splits=held)

    enumerator.finish([first.split_id])
    assert context.state.retained == enumerator.kept == {first.split_id}

    enumerator.finish([second.split_id])
    assert context.state.retained == enumerator.kept == {second.split_id}
    assert context.current_assignments() == {}
