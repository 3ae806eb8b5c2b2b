"""What an enumerator gives out is checked once, where it enters: documents hold it ever after."""

from collections.abc import Mapping
from typing import Any

import pytest

from balanced_source.api import (
    STOP,
    ReaderInfo,
    Source,
    SourceEvent,
    SourceSplit,
    SplitsAssignment,
)
from balanced_source.connectors.kafka import KafkaPartitionSplit
from balanced_source.coordinator import (
    Checkpoint,
    CoordinatorState,
    PublishAssignment,
    SourceCoordinator,
    state_codec,
)
from balanced_source.coordinator.context import CoordinatorContext
from balanced_source.coordinator.view import digest_of_settings
from balanced_source.errors import ContractViolationError
from support.numbers_source import NumbersSource
from support.pull_source import NumberLists
from support.stage import Stage
from support.tapes import TapeSource


class Odd(SourceSplit):
    """A split that says whatever a test wants."""

    def __init__(
        self, split_id: Any = ("c", "t", 0), position: Any = 0, attributes: Any = None
    ) -> None:
        self._id, self._position, self._attributes = split_id, position, attributes or {}

    @property
    def split_id(self) -> Any:
        return self._id

    @property
    def position(self) -> Any:
        return self._position

    def at(self, position: Any) -> "Odd":
        return Odd(self._id, position, self._attributes)

    def attributes(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._attributes
        return found


@pytest.mark.parametrize(
    ("split", "says"),
    [
        (Odd(attributes={STOP: None}), "the attributes of split .*, whose 'stop' is None"),
        (
            Odd(attributes={"a": {1}}),
            "the attributes of split .*, which are not JSON: 'a' is a set",
        ),
        (Odd(attributes={"a": "\ud800"}), "which is not Unicode. It must assign dicts with texts"),
        (Odd(("c", "t", "\ud800")), "as the id of a split. It must assign ids that a document can"),
        (Odd("c"), "'c' as the id of a split. It must assign ids that are tuples"),
        (Odd(position="7"), "position '7' of split"),
        (("c", "t", 0), "the enumerator has assigned a tuple among the splits"),
    ],
)
def test_a_split_that_no_document_can_hold_is_refused(split: Any, says: str) -> None:
    stage = Stage(readers=2, hosts=1).operator_starts()
    context = stage.operator.coordinator.enumerator.context

    with pytest.raises(ContractViolationError, match=says):
        context.assign_splits(SplitsAssignment(assignment={0: [split]}))

    assert context.current_assignments() == {}


def test_ids_that_cannot_be_sorted_are_refused() -> None:
    stage = Stage(readers=2, hosts=1).operator_starts()
    context = stage.operator.coordinator.enumerator.context
    first = KafkaPartitionSplit(cluster="c", topic="t", partition=0, offset=0)

    with pytest.raises(
        ContractViolationError, match=r"the ids .* with the same type at each place"
    ):
        context.assign_splits(SplitsAssignment(assignment={0: [first, Odd(("c", "t", "0"))]}))
    context.assign_splits(SplitsAssignment(assignment={0: [first]}))
    with pytest.raises(ContractViolationError, match="the ids"):
        context.assign_splits(SplitsAssignment(assignment={1: [Odd(("c", 0))]}))


def test_settings_that_cannot_be_published_are_named() -> None:
    class Wrong(NumbersSource):
        def reader_settings(self) -> Any:
            return {"since": {1, 2}}

    with pytest.raises(ContractViolationError, match=r"reader_settings .* 'since' is a set. Ret"):
        SourceCoordinator(Wrong(())).start(now=0.0)


def test_a_state_that_cannot_be_stored_is_named() -> None:
    class Wrong(NumbersSource):
        def encode_state(self, state: Any) -> Any:
            return {"seen": ["\ud800"]}

    source: Source[Any, Any] = Wrong(())
    coordinator = SourceCoordinator(source)
    coordinator.start(now=0.0)
    checkpoint: Checkpoint[Any, Any] = coordinator.checkpoint()

    with pytest.raises(ContractViolationError, match=r"encode_state .* 'seen'\[0\] is '.ud800'"):
        state_codec.encode(checkpoint, source, uid="u")


def test_the_enumerator_is_closed_with_its_coordinator() -> None:
    closed: list[bool] = []
    coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(NumbersSource(()))
    enumerator: Any = coordinator.enumerator
    enumerator.close = lambda: closed.append(True)

    coordinator.close()

    assert closed == [True]


@pytest.mark.parametrize("ahead", [1, 2])
def test_readers_hear_at_once_that_they_have_to_ask_for_splits(ahead: int) -> None:
    """No split is assigned before they do, which would be the next occasion."""
    coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(NumberLists(ahead=ahead))

    published = [
        effect.assignment
        for effect in coordinator.start(now=0.0)
        if isinstance(effect, PublishAssignment)
    ]

    assert [assignment.look_ahead for assignment in published] == [ahead]


def test_settings_of_readers_have_the_kind_as_their_key() -> None:
    class Other(TapeSource):
        def reader_settings(self) -> dict[str, str]:
            return {"world": "w"}

    with pytest.raises(ContractViolationError, match=r"reader_settings .* keys world.*'tapes'"):
        digest_of_settings(Other())


def test_events_go_to_registered_readers_only() -> None:
    context: CoordinatorContext[Any] = CoordinatorContext(CoordinatorState())
    context.set_readers({0: ReaderInfo(subtask_id=0)})

    context.send_event_to_reader(0, SourceEvent(name="hello"))
    context.send_event_to_reader(0, SourceEvent(name="again"))
    for tell in (
        lambda: context.send_event_to_reader(7, SourceEvent(name="hello")),
        lambda: context.signal_no_more_splits(7),
    ):
        with pytest.raises(ContractViolationError, match="reader 7 is not registered"):
            tell()

    assert [(e.number, e.event.name) for e in context.state.outbox] == [(1, "hello"), (2, "again")]
    assert context.state.no_more_splits == frozenset()
