"""Who reads the next part of a hybrid source."""

from typing import Any

import pytest

from balanced_source.api import ReaderInfo
from balanced_source.connectors.hybrid import checked_hybrid
from balanced_source.connectors.hybrid.enumerator import HybridSplitEnumerator
from balanced_source.coordinator import CoordinatorState, ExecuteCall, HostState
from balanced_source.coordinator.context import CoordinatorContext
from support.hybrid_world import TIME, MeasuredLists, answer


def test_the_readers_that_are_there_are_those_of_the_next_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lists = (MeasuredLists(count=0), None), (MeasuredLists(count=1, length=0), TIME)
    source, registered = checked_hybrid(lists, field="parts"), list[tuple[str, list[int]]]()
    context: Any = CoordinatorContext(CoordinatorState(parallelism=2, hosts={"0": HostState()}))
    context.set_readers({n: ReaderInfo(subtask_id=n) for n in (1, 0)})
    enumerator = HybridSplitEnumerator(context, source, None)
    monkeypatch.setattr(
        type(enumerator.part),
        "add_readers",
        lambda _, readers: registered.append((enumerator.name, list(readers))),
    )
    enumerator.start()
    (call,) = [effect for effect in context.turn.effects if isinstance(effect, ExecuteCall)]

    enumerator.handle_part_call(call.call, answer(call.call))  # type: ignore[arg-type]

    assert registered == [(source.names[1], [0, 1])]
