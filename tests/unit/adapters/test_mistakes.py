"""A mistake of a connector's pure half names the connector, in every process that runs it."""

import asyncio
import signal
import sys
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from balanced_source.api import (
    STOP,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
    SplitsAssignment,
)
from balanced_source.coordinator import ParallelismChanged, SourceCoordinator
from balanced_source.documents.assignment import Assignment
from balanced_source.errors import (
    ConnectorContractError,
    ConnectorError,
    ContractViolationError,
    DiscoveryError,
    RefusedDiscoveryError,
    StateConflictError,
    TransientDiscoveryError,
    in_short,
)
from balanced_source.reason_kinds import reason_fault
from balanced_source.reasons import Reason
from balanced_source_adapters import mistakes
from balanced_source_adapters.coordinator_loop import CoordinatorLoop
from balanced_source_adapters.mistakes import (
    call_error,
    discovery_errors,
    expect_texts,
    explained,
    named,
    of_connector,
)
from balanced_source_adapters.registrations import BUILT_IN, Registration, Registrations
from balanced_source_spark.channels.embedded import EmbeddedChannel
from support.numbers import NumbersSplit
from support.numbers_source import NumbersSource
from support.tapes import ListTapes, TapeSource
from support.world import kafka_source
from testbed.waiting import wait_until

PACKAGE = "connector 'odd' of odd-source 1.0"
MODULE = "odd_source"


class Boom(BaseException):
    """What no one expects."""


ESCAPES = (
    KeyError("x"),
    SystemExit(3),
    StopIteration(),
    asyncio.CancelledError(),
    GeneratorExit(),
    KeyboardInterrupt(),
    Boom("no"),
)
"""What code of a connector may raise; most of it would end a thread or a process."""

Act = Callable[[str], None]
"""Gets the name of each method of the enumerator."""


class OddEnumerator(SplitEnumerator[NumbersSplit, Any]):
    """Does what a test wants, in the module of the package."""

    def __init__(self, context: SplitEnumeratorContext[NumbersSplit], act: Act) -> None:
        super().__init__(context)
        self.act = act
        # Of the package: a thread may outlive the test, and with it the module.
        self.do: Callable[[Act, str], None] = sys.modules[MODULE].__dict__["do"]

    def start(self) -> None:
        self._do("start")

    def add_reader(self, subtask_id: int) -> None:
        self._do("add_reader")

    def add_splits_back(self, splits: Any, subtask_id: int) -> None:
        self._do("add_splits_back")

    def snapshot_state(self) -> Any:
        return ()

    def close(self) -> None:
        self._do("close")

    def _do(self, name: str) -> None:
        self.do(self.act, name)


@dataclass(frozen=True)
class OddSource(NumbersSource):
    act: Act = lambda _: None

    @property
    def kind(self) -> str:
        return "odd"

    def create_enumerator(self, context: Any) -> Any:
        made = OddEnumerator(context, self.act)
        made._do("create_enumerator")
        return made


@pytest.fixture(autouse=True)
def _package(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with code of its own, whose frames are in tracebacks."""
    module = types.ModuleType(MODULE)
    exec("def do(act, name):\n    act(name)\n", module.__dict__)  # noqa: S102 - made by this test
    monkeypatch.setitem(sys.modules, MODULE, module)
    found = Registrations(
        [
            Registration(kind="odd", reference=f"{MODULE}:Odd", package="odd-source 1.0"),
            Registration(kind="kafka", reference=BUILT_IN["kafka"], package="ours"),
        ]
    )
    monkeypatch.setattr(mistakes, "registered", lambda: found)


def raising(error: BaseException, method: str) -> Act:
    def act(name: str) -> None:
        if name == method:
            raise error

    return act


def run(source: OddSource) -> Exception:
    """Return what a loop says of a source whose connector fails."""
    published: list[Assignment] = []
    loop = CoordinatorLoop(
        SourceCoordinator(source, parallelism=1),
        lambda _: None,
        publish=published.append,
        first_retry=0.01,
    )
    thread = loop.start()
    try:
        wait_until(lambda: loop.problem is not None, 30, "a problem")
        assert loop.problem is not None
        problem = loop.problems["coordinator"]
        assert problem.reason == Reason.CONNECTOR_BROKEN
        assert "as a bug" not in problem.message
        assert problem.message.endswith("The coordinator is rebuilt and retries automatically")
        return loop.problem
    finally:
        loop.close()
        if thread is not None:
            thread.join(30)


@pytest.mark.parametrize("error", ESCAPES, ids=repr)
def test_an_enumerator_that_fails_is_named(error: BaseException) -> None:
    found = run(OddSource((), act=raising(error, "start")))

    assert isinstance(found, ConnectorError)
    assert str(found).startswith(f"{PACKAGE} failed in do: {in_short(error)}. Report")
    assert "Report this to the authors of the package, with the traceback" in str(found)


@pytest.mark.parametrize("error", ESCAPES, ids=repr)
def test_whatever_a_method_raises_is_a_sentence(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As where Spark or an event loop has taken the keyboard away.
    monkeypatch.setattr(mistakes.signal, "getsignal", lambda _: None)
    says = f"failed in read: {type(error).__name__}"
    with pytest.raises(ConnectorError, match=says), explained("odd", "read"):
        raise error


def test_an_interrupt_of_the_user_is_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    # As in a program of a terminal, whatever runs this test.
    monkeypatch.setattr(mistakes.signal, "getsignal", lambda _: signal.default_int_handler)
    monkeypatch.setattr(mistakes.threading, "main_thread", threading.current_thread)
    with pytest.raises(KeyboardInterrupt), explained("odd", "read"):
        raise KeyboardInterrupt


def test_a_broken_contract_is_named() -> None:
    class Odd(OddSource):
        def create_enumerator(self, context: Any) -> Any:
            def act(name: str) -> None:
                if name == "add_reader":
                    split: Any = StopsNowhere()
                    context.assign_splits(SplitsAssignment(assignment={0: [split]}))

            return OddEnumerator(context, act)

    found = run(Odd(()))

    assert isinstance(found, ConnectorContractError)
    assert str(found).startswith(
        f"{PACKAGE} breaks its contract: the enumerator has assigned the attributes of split"
        " ('a',), whose 'stop' is None. It must assign attributes without 'stop'"
    )


def test_a_reason_that_is_no_word_is_named() -> None:
    class Odd(OddSource):
        def create_enumerator(self, context: Any) -> Any:
            def act(name: str) -> None:
                if name == "start":
                    context.report("no folder", "folder x is missing: create it")

            return OddEnumerator(context, act)

    found = run(Odd(()))

    assert isinstance(found, ConnectorContractError)
    assert str(found).startswith(
        f"{PACKAGE} breaks its contract: the enumerator has reported 'folder x is missing: create"
        " it': its reason 'no folder' is not a CamelCase word"
    )


@pytest.mark.parametrize("kind", [RefusedDiscoveryError, TransientDiscoveryError])
def test_a_reason_of_discovery_that_is_no_word_is_named(kind: type[DiscoveryError]) -> None:
    """What the problem is stays in the sentence, and how bad it is."""
    failed = kind("folder x is missing: create it", scope="x", reason="no folder")
    coordinator: Any = SimpleNamespace(
        enumerator=SimpleNamespace(problems=lambda: {"x": failed}),
        source=SimpleNamespace(kind="odd"),
    )

    found = discovery_errors(coordinator)["x"]

    assert isinstance(found, kind)
    assert found.reason == Reason.DISCOVERY_FAILED
    assert str(found).startswith(
        f"{PACKAGE} breaks its contract: folder x is missing: create it; its reason 'no folder' is"
    )


@pytest.mark.parametrize("reason", ["", "noFolder", "No folder", "No\n", "N" * 129, None, 7])
def test_a_reason_is_a_word_that_kubernetes_takes(reason: object) -> None:
    assert reason_fault(reason)


def test_values_that_the_coordinator_cannot_work_with_are_named() -> None:
    """No code of the package is in that traceback."""

    class Odd(OddSource):
        look_ahead = None  # type: ignore[assignment]

    found = run(Odd(()))
    assert str(found).startswith(f"{PACKAGE} failed in what it brings to the coordinator: TypeErr")


def test_a_query_without_an_operator_says_it() -> None:
    source = OddSource((), act=raising(KeyError("x"), "start"))
    channel = EmbeddedChannel(source, lambda _: None, parallelism=1)
    channel.start(lambda _: None)
    try:
        wait_until(lambda: channel.refusal() is not None, 30, "a refusal")
        refusal = channel.refusal()
    finally:
        channel.close()
    assert refusal is not None
    assert refusal.startswith(f"{PACKAGE} failed in do: KeyError: 'x'. Report this")
    with pytest.raises(ConnectorError, match=f"{PACKAGE} failed in do: KeyError"):
        EmbeddedChannel(
            OddSource((), act=raising(KeyError("x"), "create_enumerator")),
            lambda _: None,
            parallelism=1,
        )


def test_a_wrong_answer_names_the_connector() -> None:
    source = TapeSource()
    channel = EmbeddedChannel(source, lambda _: ["a"], parallelism=1)
    channel.start(lambda _: None)
    try:
        wait_until(lambda: channel.refusal() is not None, 30, "a refusal")
        wait_until(channel.problems, 30, "a problem")
        (problem,) = channel.problems().values()
        assert channel.refusal() == problem.message
    finally:
        channel.close()
    assert problem.message.startswith(
        "connector 'tapes' of an unknown package breaks its contract: shelf: the connector has"
        " answered ListTapes with a list. Its executor must return a Discovered"
    )
    assert problem.is_fatal


@pytest.mark.parametrize("error", ESCAPES, ids=repr)
def test_a_call_that_fails_names_the_package_and_logs_its_traceback_once(
    error: BaseException,
) -> None:
    def execute(call: object) -> None:
        sys.modules[MODULE].__dict__["do"](raising(error, "ListTapes"), type(call).__name__)

    with capture_logs() as lines:
        channel = EmbeddedChannel(TapeSource(), execute, parallelism=1)
        channel.start(lambda _: None)
        try:
            wait_until(channel.problems, 30, "a problem")
            (problem,) = channel.problems().values()
            again = [call_error("tapes", ListTapes(scope="shelf", round=2), error)] * 2
        finally:
            channel.close()
    said = f"failed in its executor, which was asked for ListTapes: {type(error).__name__}"
    assert problem.message.startswith(f"shelf: {PACKAGE} {said}")
    assert all(isinstance(each, TransientDiscoveryError) for each in again)
    logged = [line for line in lines if line["event"] == "a connector failed"]
    assert len([line for line in logged if line["connector"] == "odd"]) == 1
    assert "in do\n" in logged[0]["exception"]


def test_an_enumerator_that_fails_to_close_harms_no_one() -> None:
    loop = CoordinatorLoop(
        SourceCoordinator(OddSource((), act=raising(SystemExit(1), "close"))),
        lambda _: None,
        publish=lambda _: None,
    )
    thread = loop.start()
    loop.put(ParallelismChanged(2))
    loop.close()
    assert thread is not None
    thread.join(30)
    assert not thread.is_alive()


def test_what_is_not_the_mistake_of_a_package_is_not_blamed_on_it() -> None:
    odd, kafka = OddSource(()), kafka_source("c")

    def raised(error: Exception) -> Exception:
        with pytest.raises(type(error)) as caught:
            raise error
        return caught.value

    assert of_connector(odd, raised(KeyError("in a test"))) is None
    assert of_connector(odd, StateConflictError("another process")) is None
    with pytest.raises(KeyError), named(odd):
        raise KeyError("x")
    coordinator = SourceCoordinator(kafka)
    with pytest.raises(ContractViolationError) as caught, named(kafka):
        coordinator.handle(ParallelismChanged(2), now=0.0)
    assert type(caught.value) is ContractViolationError, "the coordinator's, and not the source's"
    with pytest.raises(ContractViolationError, match="not started") as caught, named(odd):
        SourceCoordinator(odd).handle(ParallelismChanged(2), now=0.0)
    assert type(caught.value) is ContractViolationError


def test_a_source_that_makes_no_enumerator_is_named() -> None:
    with pytest.raises(ConnectorError, match=PACKAGE), named(OddSource(())):
        SourceCoordinator(OddSource((), act=raising(ValueError("no"), "create_enumerator")))


class StopsNowhere(SourceSplit):
    """A split whose stopping position is None."""

    split_id = ("a",)
    position = 0

    def at(self, position: Any) -> "StopsNowhere":
        return self

    def attributes(self) -> dict[str, Any]:
        return {STOP: None}


@pytest.mark.parametrize("found", [{"a", "b"}, "ab", ["a", 1], None])
def test_other_values_than_sequences_of_texts_are_refused(found: object) -> None:
    with pytest.raises(TypeError):
        expect_texts(found, "a sequence of texts")
    expect_texts(("a", "b"), "a sequence of texts")
