"""Problems that a driver finds: reported to the operator.

Without one, logged once and raised if fatal.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from balanced_source.api import Problem, SourceEvent
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import ConnectorError, ContractViolationError, FatalProblemError
from balanced_source_spark import host_runtime
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.host_runtime import HostRuntime
from support.memory_channel import MemoryChannel
from testbed.waiting import wait_until

GONE = Problem(
    reason="LogTruncated", message="3 records of orders/0 are gone: reset the offset", is_fatal=True
)
SLOW = Problem(reason="NoAnswer", message="cluster b does not answer: check it", scope="b")


@pytest.fixture
def channel() -> MemoryChannel:
    return MemoryChannel()


@pytest.fixture
def runtime(channel: MemoryChannel) -> Iterator[HostRuntime]:
    made = HostRuntime(channel)
    yield made
    made.close()


def registered(runtime: HostRuntime, channel: MemoryChannel) -> None:
    runtime.committed(StreamOffset())
    wait_until(lambda: channel.reports, 20, "registration", interval=0.005)


def finished(runtime: HostRuntime, channel: MemoryChannel) -> StreamOffset:
    """Return the offset of a query that has read everything and has reported it."""
    registered(runtime, channel)
    ended = Assignment(epoch=1, parallelism=1, incarnations={"0": 1}, no_more_splits=frozenset({0}))
    channel.publish(ended)
    base = runtime.base()
    assert base is not None
    runtime.planned(base)
    runtime.committed(base)
    wait_until(lambda: runtime.is_finished(base), 8, "the report of the end", interval=0.005)
    return base


def test_a_problem_is_in_the_next_report_until_it_is_resolved(
    channel: MemoryChannel, runtime: HostRuntime
) -> None:
    registered(runtime, channel)

    runtime.set_problem("b", SLOW)
    wait_until(lambda: channel.reports[-1].problems == (SLOW,), 8, "the problem", interval=0.005)

    runtime.set_problem("a", GONE)
    wait_until(
        lambda: channel.reports[-1].problems == (GONE, SLOW), 8, "both problems", interval=0.005
    )

    runtime.set_problem("a", None)
    runtime.set_problem("b", None)
    wait_until(lambda: channel.reports[-1].problems == (), 8, "no problem", interval=0.005)


def test_a_problem_before_the_registration_is_in_the_first_report(
    channel: MemoryChannel, runtime: HostRuntime
) -> None:
    runtime.set_problem("b", SLOW)

    registered(runtime, channel)

    assert channel.reports[0].problems == (SLOW,)


def test_with_an_operator_a_fatal_problem_does_not_end_the_query(runtime: HostRuntime) -> None:
    runtime.set_problem("a", GONE)

    assert runtime.base() is None


def test_without_an_operator_a_fatal_problem_ends_the_query_in_words(
    channel: MemoryChannel, runtime: HostRuntime
) -> None:
    channel.has_operator = False
    runtime.set_problem("b", SLOW)
    assert runtime.base() is None, "waiting may help"

    runtime.set_problem("a", GONE)

    with pytest.raises(
        FatalProblemError, match="3 records of orders/0 are gone: reset the offset"
    ) as raised:
        runtime.base()
    assert raised.value.reason == "LogTruncated"
    runtime.set_problem("a", None)
    assert runtime.base() is None


def test_each_change_is_logged_once(runtime: HostRuntime) -> None:
    with capture_logs() as lines:
        for _ in range(3):
            runtime.set_problem("b", SLOW)
        for _ in range(3):
            runtime.set_problem("b", None)

    assert [(line["event"], line["log_level"]) for line in lines] == [
        (SLOW.message, "warning"),
        ("problem resolved", "info"),
    ]


def test_a_query_that_waits_for_its_first_assignment_logs_what_stands_in_the_way(
    channel: MemoryChannel, runtime: HostRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AvailableNow would stand for a minute without a word. Each change is logged once."""
    channel.has_operator = False
    found = [{}, {"b": SLOW}, {"b": SLOW}, {"b": replace(SLOW, message="port is wrong")}]
    monkeypatch.setattr(channel, "problems", lambda: found.pop(0))
    monkeypatch.setattr(channel, "refusal", lambda: None if found else "over")
    monkeypatch.setattr("balanced_source_spark.newest_assignment.RETRY", 0.001)

    with capture_logs() as lines, pytest.raises(ChannelError, match="over"):
        runtime.first_assignment(timeout=60)
    assert [line["event"] for line in lines] == [SLOW.message, "port is wrong"]

    monkeypatch.setattr(channel, "problems", dict)
    with capture_logs() as lines:
        assert not runtime.wait_until_assigned(timeout=0.01)
    assert [line["event"] for line in lines] == ["problem resolved"]


def test_a_hook_that_fails_on_an_assignment_ends_the_query_with_its_sentence() -> None:
    """The channel's thread hears it, and the query would wait until it gives up."""
    said = "connector 'odd' of odd 1.0 failed in with_former: KeyError: 'x'"

    def with_former(*_: Any) -> Any:
        raise ConnectorError(said)

    channel = MemoryChannel()
    runtime = HostRuntime(channel, with_former=with_former)
    try:
        channel.publish(Assignment(epoch=1, parallelism=1, incarnations={"0": 1}))
        with pytest.raises(ConnectorError, match="failed in with_former"):
            runtime.wait_until_assigned(timeout=20)
        with pytest.raises(ConnectorError, match="failed in with_former"):
            runtime.base()
    finally:
        runtime.close()


class Wishes:
    """Stands in for `DriverCalls`; notes what assignments ask for."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def want(self, calls: Any, _called: Any) -> None:
        self.calls.append(calls)

    def answers(self) -> tuple[()]:
        return ()

    def close(self) -> None:
        """Nothing is open."""


def test_only_the_newest_assignment_asks_for_calls(channel: MemoryChannel) -> None:
    """A watch may deliver an older one after it."""
    wishes: Any = Wishes()
    runtime = HostRuntime(channel, calls=wishes)
    try:
        newest = Assignment(lineage=2, epoch=1, parallelism=1)
        for assignment in (
            newest,
            replace(newest, lineage=1, epoch=9),
            replace(newest, epoch=0),
            replace(newest, epoch=2),
        ):
            channel.publish(assignment)
    finally:
        runtime.close()

    assert len(wishes.calls) == 2


def test_a_query_that_is_finished_reports_that_at_once(
    channel: MemoryChannel, runtime: HostRuntime
) -> None:
    """The operator learns of the end by this report alone, so the query waits for it."""
    base = finished(runtime, channel)

    assert channel.reports[-1].epoch == 1
    count = len(channel.reports)
    for _ in range(5):
        assert runtime.is_finished(base)
    assert not runtime._is_urgent
    assert len(channel.reports) == count


def test_settings_without_an_assignment_are_an_error(
    channel: MemoryChannel, runtime: HostRuntime
) -> None:
    with pytest.raises(ChannelError):
        runtime.settings(timeout=0.0)

    channel.publish(Assignment(epoch=1, parallelism=1, settings={"tapes": {}}))
    assert runtime.settings(timeout=0.0) == {"tapes": {}}


def test_a_problem_with_a_reason_that_the_api_refuses_is_a_mistake_of_the_connector(
    runtime: HostRuntime,
) -> None:
    with pytest.raises(ContractViolationError, match="problem 'a': "):
        runtime.set_problem("a", replace(SLOW, reason="no answer"))

    assert list(runtime.problems) == []


@pytest.mark.parametrize("refusal", [None, "the source is suspended: resume it"])
def test_a_query_that_cannot_wait_says_why_nothing_is_assigned(
    channel: MemoryChannel, runtime: HostRuntime, refusal: str | None
) -> None:
    channel.refusal = lambda: refusal  # type: ignore[method-assign]

    error = runtime.unassigned(5.0)

    assert isinstance(error, ChannelError)
    assert (str(error) == refusal) is (refusal is not None)


def test_an_assignment_that_breaks_its_contract_is_logged_and_waits_for_the_next_one(
    channel: MemoryChannel, runtime: HostRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise ContractViolationError("split a has two owners")

    registered(runtime, channel)
    monkeypatch.setattr(type(runtime._host), "base", refuse)

    with capture_logs() as lines:
        assert runtime.base() is None

    found = [line["error"] for line in lines if line["event"] == "assignment refused"]
    assert found == ["split a has two owners"]


def test_an_event_without_a_listener_is_logged() -> None:
    with capture_logs() as lines:
        host_runtime._unexpected(3, SourceEvent(name="hello"))

    (line,) = lines
    assert (line["log_level"], line["reader"], line["name"]) == ("warning", 3, "hello")


@pytest.mark.parametrize("older", [{"durable": StreamOffset()}, {"committed": {("c", "t", 0): 1}}])
def test_a_report_of_before_the_end_does_not_finish_a_query(
    channel: MemoryChannel, runtime: HostRuntime, older: dict[str, Any]
) -> None:
    """The operator would wait for the rest, and start the query again."""
    base = finished(runtime, channel)
    runtime.close()
    newest = runtime._reported
    assert newest is not None

    runtime._reported = replace(newest, **older)

    assert not runtime.is_finished(base)
