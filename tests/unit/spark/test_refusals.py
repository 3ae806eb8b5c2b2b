"""A query that ends by itself is told at once why it cannot begin.

Spark's own source does so too.
"""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from balanced_source.api import AsyncCall
from balanced_source.connectors.discovery import Discovered
from balanced_source.connectors.kafka import DiscoverKafka, KafkaPartitionSplit
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import (
    DiscoveryError,
    FatalProblemError,
    RefusedDiscoveryError,
    TransientDiscoveryError,
)
from balanced_source_adapters.folder import FolderStore
from balanced_source_spark import why_nothing
from balanced_source_spark.channels.embedded import EmbeddedChannel
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.host_runtime import HostRuntime
from support.world import kafka_source
from testbed.waiting import wait_until

SPLIT = ("c", "t", 0)
Answer = Callable[[bool], Any]


def runtime(answer: Answer, *, confirm: float = 0.0, **changes: Any) -> HostRuntime:
    """`answer` is asked whether this is a discovery.

    What it returns is the answer, an error is raised.
    """

    def execute(call: AsyncCall) -> Any:
        told = answer(isinstance(call, DiscoverKafka))
        if isinstance(told, Exception):
            raise told
        return told

    return HostRuntime(
        EmbeddedChannel(kafka_source("c", **changes), execute, parallelism=1, confirm=confirm)
    )


def listed(problem: DiscoveryError | None = None) -> Discovered:
    return Discovered(split_ids=frozenset({SPLIT}), problem=problem)


@pytest.mark.parametrize("discovers", [True, False])
def test_a_refusal_is_reported_at_once(discovers: bool) -> None:
    """The discovery, or the look-up of start offsets."""
    refused = RefusedDiscoveryError("no record at or after the moment", scope="c")
    made = runtime(lambda is_discovery: listed() if is_discovery and not discovers else refused)
    try:
        with pytest.raises(ChannelError, match="no record at or after"):
            made.first_assignment(timeout=60)
    finally:
        made.close()


def test_a_transient_error_is_waited_for() -> None:
    made = runtime(lambda _: TransientDiscoveryError("not now", scope="c"))
    try:
        with pytest.raises(
            ChannelError, match=r"^not now\. The query waited 1 s: option startTimeoutSeconds"
        ):
            made.first_assignment(timeout=1)
    finally:
        made.close()


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (
            RefusedDiscoveryError("no topic on cluster c matches 'x'", scope="c"),
            "no topic on cluster c matches 'x'",
        ),
        (None, "has no splits. Check the options"),
    ],
    ids=["no topic", "no partitions"],
)
def test_a_query_that_ends_by_itself_says_soon_that_there_is_nothing(
    problem: DiscoveryError | None, reason: str
) -> None:
    """Everything is discovered: waiting does not help, and no operator is missing."""
    made = runtime(lambda _: Discovered(split_ids=frozenset(), problem=problem))
    try:
        with pytest.raises(ChannelError, match=f"there is nothing to read: .*{reason}"):
            made.first_assignment(timeout=60)
    finally:
        made.close()


def test_a_problem_beside_found_splits_is_not_a_refusal() -> None:
    """One topic is missing; the others are read."""
    problem = RefusedDiscoveryError("topic u does not exist", scope="c")
    split = KafkaPartitionSplit(cluster="c", topic="t", partition=0, offset=0)
    made = runtime(lambda is_discovery: listed(problem) if is_discovery else (split,))
    try:
        assert made.first_assignment(timeout=60).owners == {SPLIT: 0}
    finally:
        made.close()


def test_a_topic_that_is_not_everywhere_known_yet_is_waited_for() -> None:
    """It was created a moment ago: the broker that was asked first had not heard of it."""
    attempts: list[bool] = []

    def answer(is_discovery: bool) -> Any:
        attempts.append(is_discovery)
        if len(attempts) == 1:
            return Discovered(
                split_ids=frozenset(),
                problem=RefusedDiscoveryError("topic t does not exist", scope="c"),
            )
        return (
            listed()
            if is_discovery
            else (KafkaPartitionSplit(cluster="c", topic="t", partition=0, offset=0),)
        )

    made = runtime(answer, confirm=3600.0, discovery_interval=0.01)
    try:
        assert made.first_assignment(timeout=60).owners == {SPLIT: 0}
    finally:
        made.close()


def polled(made: HostRuntime) -> None:
    """What Spark does all the time; it ends when the query does."""
    made.committed(StreamOffset())
    wait_until(
        lambda: (base := made.base()) is not None and base.owners,
        20,
        "an assignment",
        interval=0.005,
    )


@pytest.mark.parametrize("discovers", [True, False])
def test_a_stream_that_cannot_begin_ends_in_words(discovers: bool) -> None:
    """Without an operator no one else would tell."""
    refused = RefusedDiscoveryError(
        "topic t does not exist on cluster c: create it", scope="c", reason="UnknownTopic"
    )
    made = runtime(lambda is_discovery: listed() if is_discovery and not discovers else refused)
    try:
        with pytest.raises(
            FatalProblemError, match="topic t does not exist on cluster c: create it"
        ) as raised:
            polled(made)
        assert raised.value.reason == "UnknownTopic"
    finally:
        made.close()


def test_a_stream_ends_when_no_server_has_answered_within_its_patience() -> None:
    """It would deliver no rows forever, and the log is not where its user looks."""
    made = runtime(
        lambda _: TransientDiscoveryError("cluster c does not answer; trying again", scope="c")
    )
    try:
        made.committed(StreamOffset())
        with pytest.raises(
            ChannelError, match=r"^cluster c does not answer\. The query waited 1 s"
        ):
            made.wait_until_begun(timeout=1)
    finally:
        made.close()


def test_a_stream_whose_servers_say_nothing_at_all_is_not_sent_to_an_operator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(why_nothing, "LAST_ANSWER", 0.0)
    answered = threading.Event()
    made = runtime(lambda _: answered.wait(60))
    try:
        wait_until(lambda: made._channel.undiscovered, 20, "a question", interval=0.005)
        with pytest.raises(
            ChannelError,
            match=r"^no server of the source has answered for c\. Check their addresses",
        ):
            made.wait_until_begun(timeout=0)
    finally:
        answered.set()
        made.close()


def test_a_driver_with_a_state_folder_is_not_sent_to_an_operator_either(tmp_path: Path) -> None:
    channel = EmbeddedChannel(
        kafka_source("c"), lambda _: None, parallelism=1, state=FolderStore(tmp_path / "state")
    )

    assert str(why_nothing.unassigned(1.0, channel)).startswith("no server of the source has")


@pytest.mark.parametrize(
    "is_fatal",
    [pytest.param(True, id="name"), pytest.param(False, id="pattern")],
)
def test_a_stream_ends_where_waiting_for_its_only_splits_does_not_help(is_fatal: bool) -> None:
    """As the error says: generic code knows no reason of a connector."""
    missing = RefusedDiscoveryError(
        "nothing there; looking again", scope="c", reason="OfAPlugIn", is_hopeless=is_fatal
    )
    made = runtime(lambda _: Discovered(split_ids=frozenset(), problem=missing))
    try:
        made.committed(StreamOffset())
        wait_until(
            lambda: made._channel.refusal() is not None, 20, "nothing to read", interval=0.005
        )
        if is_fatal:
            with pytest.raises(FatalProblemError, match=r"^nothing there$"):
                made.base()
        else:
            assert made.base() is None or not made.base().owners  # type: ignore[union-attr]
            assert [problem.message for problem in made.problems] == [
                "nothing there; looking again"
            ]
    finally:
        made.close()


def test_a_stream_waits_for_what_may_pass_and_logs_it_once() -> None:
    """The operator would show the same words as a condition."""
    attempts: list[bool] = []

    def answer(is_discovery: bool) -> Any:
        attempts.append(is_discovery)
        if len(attempts) < 3:
            return TransientDiscoveryError("cluster c does not answer", scope="c")
        return (
            listed()
            if is_discovery
            else (KafkaPartitionSplit(cluster="c", topic="t", partition=0, offset=0),)
        )

    with capture_logs() as lines:
        made = runtime(answer)
        try:
            polled(made)
            wait_until(
                lambda: made.base() is not None and not made.problems,
                20,
                "all is well",
                interval=0.005,
            )
        finally:
            made.close()
    told = [line["event"] for line in lines if line.get("reason") == "DiscoveryFailed"]
    assert told == ["cluster c does not answer", "problem resolved"]


def test_a_stream_that_reads_continues_although_discovery_is_refused() -> None:
    attempts: list[bool] = []

    def answer(is_discovery: bool) -> Any:
        attempts.append(is_discovery)
        if attempts.count(True) > 1:
            return RefusedDiscoveryError("credentials are wrong", scope="c")
        return (
            listed()
            if is_discovery
            else (KafkaPartitionSplit(cluster="c", topic="t", partition=0, offset=0),)
        )

    made = runtime(answer, discovery_interval=0.01)
    try:
        polled(made)
        wait_until(
            lambda: attempts.count(True) > 2 and made.base() and made.problems,
            20,
            "a problem",
            interval=0.005,
        )
        assert [problem.message for problem in made.problems] == ["credentials are wrong"]
    finally:
        made.close()


@pytest.mark.parametrize("is_own", [False, True], ids=["another", "its own"])
def test_a_channel_that_is_closed_by_another_thread_waits_for_its_own(
    monkeypatch: pytest.MonkeyPatch, *, is_own: bool
) -> None:
    """A state that is written later would end the next query."""
    joined = list[float]()
    channel = EmbeddedChannel(kafka_source("c"), lambda _: listed(), parallelism=1)
    channel.start(lambda _: None)
    thread = channel._thread
    assert thread is not None
    end = thread.join
    monkeypatch.setattr(thread, "join", joined.append)
    with monkeypatch.context() as patched:
        if is_own:
            patched.setattr(threading, "current_thread", lambda: thread)
        channel.close()

    assert bool(joined) is not is_own
    end()


def test_a_coordinator_that_fails_is_named() -> None:
    channel = EmbeddedChannel(kafka_source("c"), lambda _: listed(), parallelism=1)
    assert channel.refusal() is None, "it has not begun"
    channel.start(lambda _: None)
    try:
        channel.rescale(0)
        said = "the coordinator failed: ContractViolation"
        wait_until(lambda: said in str(channel.refusal()), 20, "the refusal")
    finally:
        channel.close()


def channel(answer: Any, *, confirm: float = 0.0) -> EmbeddedChannel:
    return EmbeddedChannel(kafka_source("c"), lambda _: answer, parallelism=1, confirm=confirm)


def test_each_driver_of_a_host_has_the_next_number() -> None:
    made = channel(listed())

    assert made.claim("0") == 1
    known = made.coordinator.state.hosts["0"]
    made.coordinator._context.state = replace(
        made.coordinator.state, hosts={"0": replace(known, incarnation=4)}
    )
    assert (made.claim("0"), made.claim("unknown")) == (5, 1)


@pytest.mark.parametrize(
    ("has_splits", "confirm", "is_fatal"),
    [(False, 0.0, True), (False, 3600.0, False), (True, 0.0, False)],
)
def test_a_hopeless_problem_is_fatal_only_where_there_is_nothing_else_to_read(
    has_splits: bool, confirm: float, is_fatal: bool
) -> None:
    missing = RefusedDiscoveryError("nothing there", scope="c", reason="Odd", is_hopeless=True)
    made = channel(Discovered(split_ids=frozenset(), problem=missing), confirm=confirm)
    assert made.problems() == {}, "not started yet"
    seen: list[Any] = []
    made.start(seen.append)
    try:
        wait_until(made.problems, 20, "the problem", interval=0.005)
        assert made._loop is not None
        made._loop._assigned_in = "" if has_splits else None
        if is_fatal:
            wait_until(
                lambda: [p.is_fatal for p in made.problems().values()] == [True],
                20,
                "the verdict",
                interval=0.005,
            )
        (problem,) = made.problems().values()
        assert problem.is_fatal is is_fatal
        assert seen == [], "an epoch without splits is held back"
    finally:
        made.close()
