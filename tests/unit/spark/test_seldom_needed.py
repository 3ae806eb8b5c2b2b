"""Parts of a driver that are seldom needed: refusals, idle times, and pages that do not fit."""

import sys
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.api import AsyncCall, CallCodec, DriverOnly
from balanced_source.coordinator import state_codec
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.calls import CallError, WantedCall
from balanced_source.errors import CorruptDocumentError, InvalidSpecError
from balanced_source_adapters.folder import FolderStore
from balanced_source_spark import driver_calls
from balanced_source_spark.channels import watch
from balanced_source_spark.channels.embedded import UID, EmbeddedChannel
from balanced_source_spark.channels.watch import HELD, Follower
from balanced_source_spark.driver_calls import DriverCalls
from balanced_source_spark.journal_stores.location import journal_store
from balanced_source_spark.kafka import pool as pool_module
from balanced_source_spark.kafka.pool import Pool
from support.world import Broker, kafka_source
from testbed.waiting import wait_until

OBJECTS = "balanced_source_spark.journal_stores.objects"


def test_an_object_store_without_its_client_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, OBJECTS, None)

    with pytest.raises(
        InvalidSpecError,
        match=r"journalLocation: .*s3://b/j.* its client is not installed: pip install obstore",
    ):
        journal_store("s3://b/j", field="journalLocation")


def has_readers(seen: list[Assignment], parallelism: int) -> bool:
    return bool(seen) and seen[-1].parallelism == parallelism


def test_a_query_that_starts_with_another_number_of_readers_has_it_from_its_stored_state(
    tmp_path: Path,
) -> None:
    """The state has the number of the former query, and the option asks for another."""
    broker, source, store = Broker(), kafka_source("c"), FolderStore(tmp_path / "state")
    broker.create("c", "t", range(8), end=3)
    for parallelism in (2, 5, 5):
        seen: list[Assignment] = []
        channel = EmbeddedChannel(source, broker.execute, parallelism=parallelism, state=store)
        channel.start(seen.append)
        wait_until(partial(has_readers, seen, parallelism), 20, "the readers", interval=0.01)
        channel.close()
        stored = state_codec.decode(str(store.read()), source, uid=UID)
        assert stored.coordinator.parallelism == parallelism


def test_a_stored_state_that_is_damaged_says_where_it_is_and_what_to_do(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "state")
    store.swap("{")

    with pytest.raises(
        CorruptDocumentError,
        match=r"the stored state .*/state.* is damaged: restore it together .* Details: ",
    ):
        EmbeddedChannel(kafka_source("c"), lambda _: None, parallelism=1, state=store)


class SweptClock:
    """Time for a thread that sweeps: ends it after some rounds."""

    def __init__(self, rounds: int) -> None:
        self.now, self.slept, self._rounds = 0.0, list[float](), rounds

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) > self._rounds:
            raise EOFError("enough rounds")
        self.now += seconds


@pytest.mark.parametrize(("rounds", "closed"), [(1, [False]), (2, [True])])
def test_a_consumer_is_closed_when_it_was_idle_for_the_time_set(
    monkeypatch: pytest.MonkeyPatch, rounds: int, closed: list[bool]
) -> None:
    clock, seen = SweptClock(rounds), [False]
    monkeypatch.setattr(pool_module, "time", clock)
    pool = Pool[Any](max_idle=30.0)
    pool._sweeper = threading.current_thread()
    with pool.borrowed("k", lambda: SimpleNamespace(close=lambda: seen.__setitem__(0, True))):
        pass

    with pytest.raises(EOFError):
        pool._keep_sweeping()

    assert clock.slept == [15.0] * (rounds + 1), "twice in the time"
    assert seen == closed


class HeldWatch:
    """Its attempts last as long as a test says, and end without an error."""

    def __init__(self, *lasts: float) -> None:
        self.now, self.lasts, self.waits = 0.0, list(lasts), list[float]()
        self.stop: Any = SimpleNamespace(is_set=lambda: not self.lasts, wait=self.waits.append)

    def list(self) -> Any:
        return SimpleNamespace(revision="1", found=None)

    def changes(self, revision: str) -> Any:
        self.now += self.lasts.pop(0)
        return iter(())

    def monotonic(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("lasts", "waits"),
    [
        ((0.0, 0.0, HELD, 0.0), [0.2, 0.4, 0.2]),
        ((0.0, 0.0, HELD - 0.1, 0.0), [0.2, 0.4, 0.8, 1.6]),
    ],
    ids=["held", "short"],
)
def test_a_watch_that_held_begins_again_at_once(
    monkeypatch: pytest.MonkeyPatch, lasts: tuple[float, ...], waits: list[float]
) -> None:
    scene: Any = HeldWatch(*lasts)
    monkeypatch.setattr(watch, "time", scene)
    monkeypatch.setattr("random.uniform", lambda *_: 1.0)

    Follower(scene, lambda _: None, scene.stop).run()

    assert scene.waits == waits


class PageCodec(CallCodec):
    """A call is the size of its result."""

    def call_to_json(self, call: AsyncCall) -> Any:
        raise AssertionError("the driver sends no calls")

    def call_from_json(self, data: Any) -> Any:
        return SimpleNamespace(scope="s", size=int(data))

    def result_to_json(self, call: AsyncCall, result: Any) -> Any:
        return result

    def result_from_json(self, call: AsyncCall, data: Any) -> Any:
        raise AssertionError("the driver gets no results")


def pages_connector(codec: CallCodec | None) -> Any:
    return SimpleNamespace(
        kind="pages",
        codec=codec,
        executor=lambda *_, **__: lambda call: "x" * call.size,
        identity_of=lambda _: DriverOnly(),
    )


def answered(codec: CallCodec | None, wanted: Mapping[str, int]) -> list[Any]:
    calls = DriverCalls(lambda: pages_connector(codec), None, client_id="c")  # type: ignore[arg-type]
    calls.want([WantedCall(id=name, call=size) for name, size in wanted.items()], lambda: None)
    wait_until(
        lambda: all(future.done() for future in calls._running.values()), 20, "the calls to end"
    )
    found = list(calls.answers())
    calls.close()
    return found


def test_answers_that_do_not_fit_into_a_report_wait_for_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the order of the calls: none is left behind for smaller ones."""
    wanted = {"a": 1, "b": 2, "c": 3}
    data = [answer.data for answer in answered(PageCodec(), wanted)]
    assert len(data) == 3

    for room, fitting in ((len("".join(data)), "abc"), (len("".join(data)) - 1, "ab")):
        monkeypatch.setattr(driver_calls, "ROOM", room)
        assert [answer.id for answer in answered(PageCodec(), wanted)] == list(fitting)
    monkeypatch.setattr(driver_calls, "ROOM", len(data[0]) - 1)
    assert answered(PageCodec(), wanted) == []


def test_a_connector_without_a_codec_says_so_to_the_operator() -> None:
    (answer,) = answered(None, {"a": 1})

    assert isinstance(answer.error, CallError)
    assert "connector 'pages' has no codec for calls" in answer.error.message
    assert answer.error.scope == ""


def test_a_call_that_fails_by_a_mistake_of_the_connector_names_the_connector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that the connector has worded is told of in its own words."""

    def fails(_: object) -> None:
        raise KeyError("folder")

    connector = pages_connector(PageCodec())
    monkeypatch.setattr(connector, "executor", lambda *_, **__: fails)
    calls = DriverCalls(lambda: connector, None, client_id="c")  # type: ignore[arg-type]

    failed = calls._made(1)
    assert isinstance(failed, CallError)
    assert "connector 'pages'" in failed.message
    assert "folder" in failed.message
    assert failed.scope == "s"
    connector.identity_of = lambda _: None
    refused = calls._made(1)
    assert isinstance(refused, CallError)
    assert "is not for a driver to make" in refused.message
    assert "'pages'" not in refused.message
