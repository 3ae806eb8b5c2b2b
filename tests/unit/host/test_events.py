"""Custom events between enumerator and readers.

Through the documents, once per incarnation, in order.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.api import SPLIT_REQUEST, SourceEvent
from balanced_source.connectors.discovery import DiscoveringSplitEnumerator
from balanced_source.coordinator import ParallelismChanged, ReportReceived
from support.world import Broker, Driver, Operator, Store, kafka_source


def event(number: int) -> SourceEvent:
    return SourceEvent(name="hello", payload={"number": number})


@dataclass
class Scene:
    """The operator, one driver, and what each side was told."""

    broker: Broker = field(default_factory=Broker)
    store: Store = field(default_factory=Store)
    told_readers: list[tuple[int, int]] = field(default_factory=list)
    told_enumerator: list[tuple[int, Any]] = field(default_factory=list)
    requests: list[tuple[int, str | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.broker.create("c", "t", range(4), end=3)
        self.operator = Operator(kafka_source(), self.store, self.broker)
        self.driver = Driver(self.store, self.broker)
        self.start_operator()
        self.operator.answer()
        self.start_driver()

    def start_operator(self) -> None:
        self.operator.start()
        self._listen()

    def _listen(self) -> None:
        enumerator = self.operator.coordinator.enumerator
        assert isinstance(enumerator, DiscoveringSplitEnumerator)
        heard = lambda subtask, e: self.told_enumerator.append((subtask, e.payload["number"]))  # noqa: E731
        object.__setattr__(enumerator, "handle_source_event", heard)
        asked = lambda subtask, location: self.requests.append((subtask, location))  # noqa: E731
        object.__setattr__(enumerator, "handle_split_request", asked)

    def restart_operator(self) -> None:
        """It dies; reports that it has not seen wait for its successor."""
        reports = dict(self.store.reports)
        self.store.reports.clear()
        self.start_operator()
        self.store.reports.update(reports)
        self.operator.answer()

    def start_driver(self) -> None:
        self.driver.start()
        self.operator.see_reports()
        self.adopt()

    def adopt(self) -> None:
        """The driver sees the newest assignment, runs a micro-batch, hands events over.

        No one reports.
        """
        self.driver.see_assignment()
        self.driver.batch()
        self.driver.host, fresh = self.driver.host.take_events()
        self.told_readers += [(e.subtask_id, e.event.payload["number"]) for e in fresh]

    def report(self) -> None:
        """The operator sees a report."""
        self.driver.report()
        self.operator.see_reports()

    def send(self, subtask: int, number: int) -> None:
        """The enumerator says something, at the next thing that happens."""
        context = self.operator.coordinator._context
        context.send_event_to_reader(subtask, event(number))
        self.operator._do(self.operator.coordinator._settle())

    def say(self, subtask: int, number: int) -> None:
        """A reader says something."""
        self.driver.host = self.driver.host.send_event(subtask, event(number))


def test_readers_hear_the_enumerator_once_and_in_order() -> None:
    scene = Scene()
    for number, subtask in enumerate((0, 1, 0)):
        scene.send(subtask, number)

    for _ in range(3):
        scene.adopt()

    assert scene.told_readers == [(0, 0), (1, 1), (0, 2)]
    scene.report()
    assert scene.operator.coordinator.state.outbox == ()


def test_the_enumerator_gets_events_of_readers_once_and_in_order() -> None:
    scene = Scene()
    for number, subtask in enumerate((1, 0)):
        scene.say(subtask, number)

    for _ in range(3):
        scene.report()

    assert scene.told_enumerator == [(1, 0), (0, 1)]
    scene.adopt()
    assert scene.driver.host.outbox == ()


def test_an_event_comes_with_the_assignment_in_which_it_was_sent() -> None:
    """A reader that is new has its splits before it hears anything."""
    scene = Scene()
    scene.operator.handle(ParallelismChanged(3))
    scene.send(2, 7)
    scene.driver.see_assignment()

    assert scene.driver.host.take_events()[1] == (), "not adopted yet"

    scene.adopt()
    assert scene.told_readers == [(2, 7)]


def test_a_restart_of_the_operator_neither_repeats_nor_loses() -> None:
    scene = Scene()
    scene.say(0, 1)
    scene.send(0, 1)
    scene.report()
    scene.say(0, 2)
    scene.driver.report()

    scene.restart_operator()
    scene.operator.see_reports()
    scene.adopt()

    assert scene.told_enumerator == [(0, 1), (0, 2)]
    assert scene.told_readers == [(0, 1)]


def test_a_new_incarnation_gets_no_events_of_the_old_one() -> None:
    """The enumerator sees it by `add_reader`, and says again what matters."""
    scene = Scene()
    scene.send(0, 1)
    scene.say(0, 1)

    scene.start_driver()
    scene.send(0, 2)
    scene.say(0, 2)
    scene.adopt()
    scene.report()

    assert scene.told_readers == [(0, 2)]
    assert scene.told_enumerator == [(0, 2)]


def test_after_lost_enumerator_state_epochs_restart_and_the_host_follows() -> None:
    scene = Scene()
    for number in range(3):
        scene.send(0, number)
    scene.adopt()
    scene.report()
    scene.store.state = None
    scene.operator.parallelism = 2

    scene.restart_operator()
    scene.adopt()
    scene.report()
    scene.adopt()
    scene.send(0, 9)
    scene.adopt()

    assert scene.told_readers == [(0, 0), (0, 1), (0, 2), (0, 9)]


def test_readers_that_are_gone_leave_no_events_behind() -> None:
    scene = Scene()
    scene.send(1, 1)
    scene.say(1, 5)
    scene.operator.handle(ParallelismChanged(1))

    assert scene.operator.coordinator.state.outbox == ()
    scene.report()
    assert scene.told_enumerator == [], "nobody who could be answered"
    scene.adopt()
    assert scene.driver.host.outbox == ()


def test_a_request_for_work_reaches_the_enumerator_with_the_place_it_comes_from() -> None:
    scene = Scene()
    scene.driver.host = scene.driver.host.send_event(1, SPLIT_REQUEST)
    report = scene.driver.report()
    assert report is not None
    located = replace(report, location="node-7", sequence=report.sequence + 1)

    scene.operator.handle(ReportReceived(located))
    scene.operator.handle(ReportReceived(replace(located, sequence=located.sequence + 1)))

    assert scene.requests == [(1, "node-7")]
    assert scene.told_enumerator == []


def test_each_host_acknowledges_its_own_readers_events() -> None:
    """Readers 0 and 2 run on the first host, 1 and 3 on the second.

    Numbers are counted over both.
    """
    broker, store = Broker(), Store()
    broker.create("c", "t", range(4), end=3)
    operator = Operator(kafka_source(), store, broker, parallelism=4, hosts=("0", "1"))
    operator.start()
    operator.answer()
    first, second = Driver(store, broker, name="0"), Driver(store, broker, name="1")
    for driver in (first, second):
        driver.start()
    operator.see_reports()
    for subtask in (0, 1, 2, 3):
        operator.coordinator._context.send_event_to_reader(subtask, event(subtask))
    operator._do(operator.coordinator._settle())

    heard = {}
    for driver in (second, first):
        driver.see_assignment()
        driver.batch()
        driver.host, fresh = driver.host.take_events()
        heard[driver.name] = [e.subtask_id for e in fresh]
        driver.report()
        operator.see_reports()
        left = {e.subtask_id for e in operator.coordinator.state.outbox}
        assert left == ({0, 2} if driver is second else set())

    assert heard == {"0": [0, 2], "1": [1, 3]}


@pytest.mark.parametrize("loses_reports", [False, True])
@settings(deadline=None)
@given(
    steps=st.lists(
        st.sampled_from(["send0", "send1", "say0", "say1", "adopt", "report", "operator"]),
        max_size=40,
    )
)
def test_in_any_order_of_things_every_event_arrives_once(
    steps: list[str], loses_reports: bool
) -> None:
    scene = Scene()
    sent: dict[str, list[int]] = {"send0": [], "send1": [], "say0": [], "say1": []}
    for number, step in enumerate(steps):
        match step:
            case "adopt":
                scene.adopt()
            case "report":
                scene.driver.report()
                if not (loses_reports and number % 3 == 0):
                    scene.operator.see_reports()
            case "operator":
                scene.restart_operator()
            case _:
                subtask = int(step[-1])
                (scene.send if step.startswith("send") else scene.say)(subtask, number)
                sent[step].append(number)
    scene.operator.see_reports()
    for _ in range(3):
        scene.adopt()
        scene.report()

    for subtask in (0, 1):
        assert [n for s, n in scene.told_readers if s == subtask] == sent[f"send{subtask}"]
        assert [n for s, n in scene.told_enumerator if s == subtask] == sent[f"say{subtask}"]
    assert (scene.driver.host.outbox, scene.operator.coordinator.state.outbox) == ((), ())
