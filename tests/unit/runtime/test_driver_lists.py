"""A source that only its driver can list, on the operator.

From the first start on, and through restarts of both.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import (
    AsyncCall,
    CallCodec,
    Caller,
    CallExecutor,
    DriverOnly,
    Identity,
    SecretReader,
)
from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import report as report_document
from balanced_source.documents.report import HostReport
from balanced_source_adapters.connectors import Connectors
from balanced_source_adapters.kafka.connector import KafkaConnector
from balanced_source_adapters.registrations import Registration
from balanced_source_operator.runtime import coordination
from balanced_source_operator.runtime.driver_calls import PATIENCE
from balanced_source_spark.driver_calls import DriverCalls
from support import virtual_time
from support.cluster_story import SPEC, Story
from support.quiet_story import beat
from support.world import UID, Broker, Driver, Store
from testbed.waiting import wait_until


class Remembered(CallCodec):
    """Numbers for values: here both sides live in one process."""

    values: list[Any] = []

    def call_to_json(self, call: AsyncCall) -> int:
        if call not in self.values:
            self.values.append(call)
        return self.values.index(call)

    def call_from_json(self, data: Any) -> AsyncCall:
        found: AsyncCall = self.values[data]
        return found

    def result_to_json(self, call: AsyncCall, result: Any) -> int:
        self.values.append(result)
        return len(self.values) - 1

    def result_from_json(self, call: AsyncCall, data: Any) -> Any:
        return self.values[data]


class DriverListed(KafkaConnector):
    """Kafka, as if only the driver could reach the brokers."""

    broker = Broker()

    @property
    def codec(self) -> CallCodec:
        return Remembered()

    def identity_of(self, call: AsyncCall) -> Identity:
        return DriverOnly()

    def executor(self, secrets: SecretReader, *, caller: Caller, client_id: str) -> CallExecutor:
        if caller is Caller.OPERATOR:
            return self._refuse
        return self.broker.execute

    def _refuse(self, call: AsyncCall) -> Any:
        raise AssertionError("the operator makes none of these calls")


class NoSecrets:
    def read(self, name: str) -> Mapping[str, str]:
        raise LookupError(name)


class AnsweringDriver(Driver):
    """Its reports have the answers to what the assignment asks for."""

    calls: DriverCalls | None = None

    def start(self) -> None:
        self.calls = DriverCalls(DriverListed, NoSecrets(), client_id="test")
        super().start()

    def report(self) -> HostReport | None:
        self.sequence += 1
        report = self.host.report(sequence=self.sequence)
        if report is not None:
            made = replace(report, answers=self._answers(self.store))
            self.store.reports[self.name] = report_document.encode(made, source=UID)
        return report

    def _answers(self, store: Store) -> tuple[Any, ...]:
        assert self.calls is not None
        if store.assignment is None:
            return ()
        self.calls.want(
            assignment_document.decode(store.assignment, source=UID).calls, lambda: None
        )
        running = self.calls._running
        wait_until(
            lambda: all(f.done() for f in running.values()), 20, "calls to end", interval=0.001
        )
        return self.calls.answers()


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> Story:
    made = Story()
    DriverListed.broker = made.broker
    reference = f"{__name__}:DriverListed"
    connectors = Connectors([Registration(kind="kafka", reference=reference, package="test 1")])
    monkeypatch.setattr(Connectors, "of", lambda *_: DriverListed())
    monkeypatch.setattr(coordination, "installed", lambda: connectors)
    # The same by duck typing
    made.driver = AnsweringDriver(made.documents, made.broker)  # type: ignore[arg-type]
    return made


def check(story: Story) -> None:
    assert story.broken == []
    assert len(story.driver.delivered) == sum(story.broker.ends.values())


def test_the_application_is_created_so_that_it_can_list(story: Story) -> None:
    async def play() -> None:
        await story.begin(parallelism=2)
        await story.launched()
        assert story.assignment is not None
        assert (story.assignment.epoch, len(story.assignment.calls)) == (0, 1), (
            "it asks, and decides nothing"
        )
        assert story.documents.text("enumerator") is None

        story.driver.start()
        await story.adopted(parallelism=2, splits=8)
        assert story.assignment is not None
        assert (story.assignment.lineage, story.assignment.calls) == (1, ())
        await story.end()

    virtual_time.run(play())
    check(story)


def test_operator_and_driver_restart_while_it_is_listed(story: Story) -> None:
    async def play() -> None:
        await story.begin(parallelism=2)
        await story.launched()
        story.driver.start()
        await story.operators.pop().stop()
        story.start_operator(name="operator-2")
        story.driver.start()
        await story.adopted(parallelism=2, splits=8)

        story.patch(parallelism=3)
        await story.operators.pop().stop()
        story.start_operator(name="operator-3")
        await story.adopted(parallelism=3, splits=8)
        await story.end()

    virtual_time.run(play())
    check(story)


def test_a_driver_that_does_not_answer_is_a_condition(story: Story) -> None:
    async def play() -> None:
        await story.begin(parallelism=2)
        await story.launched()
        await story.until(
            lambda: "No driver has answered" in str(story.status), f"a condition after {PATIENCE} s"
        )
        story.driver.start()
        await story.adopted(parallelism=2, splits=8)
        await story.until(lambda: "No driver has answered" not in str(story.status), "all is well")
        story.patch(suspend=True)
        began = virtual_time.clock()
        await story.until(lambda: virtual_time.clock() - began > 3 * PATIENCE, "time to pass")
        assert "No driver has answered" not in str(story.status), "it is suspended"
        await story.end()

    virtual_time.run(play())
    check(story)


def test_a_driver_that_lives_and_does_not_answer_is_told_in_time(story: Story) -> None:
    async def play() -> None:
        kafka = {**SPEC["source"]["kafka"], "discovery": {"interval": "10m"}}
        await story.begin(parallelism=2, source={"kafka": kafka})
        await story.launched()
        story.driver.start()
        await story.adopted(parallelism=2, splits=8)
        asked: list[float] = []
        for _ in range(120):
            beat(story)
            if story.assignment is not None and story.assignment.calls:
                asked.append(virtual_time.clock())
            if "No driver has answered" in str(story.status):
                break
            await asyncio.sleep(10)
        assert virtual_time.clock() - asked[0] <= PATIENCE + 10, "not at the next check only"
        await story.end()

    virtual_time.run(play())
    check(story)


def test_a_failed_listing_of_the_driver_is_reported(story: Story) -> None:
    async def play() -> None:
        await story.begin(parallelism=2)
        story.broker.down.add("main")
        await story.launched()
        story.driver.start()

        def is_said() -> bool:
            story.driver.report()
            return "main is down" in str(story.status)

        await story.until(is_said, "a condition that says so")
        story.broker.down.clear()
        await story.adopted(parallelism=2, splits=8)
        await story.end()

    virtual_time.run(play())
    check(story)
