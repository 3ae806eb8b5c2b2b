"""Calls that only a driver can make.

Asked in the assignment, answered in the report, by the code of both sides.
"""

import asyncio
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from balanced_source.api import (
    AsyncCall,
    CallCodec,
    Caller,
    CallExecutor,
    Connector,
    DriverOnly,
    Identity,
    NamedSecrets,
    SecretReader,
)
from balanced_source.connectors.discovery import Discover
from balanced_source.coordinator import CallCompleted, ExecuteCall
from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import calls as call_documents
from balanced_source.documents import report as report_document
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.calls import MAX_PAGES, CallAnswer, WantedCall
from balanced_source.documents.report import HostReport
from balanced_source.documents.storage import BLOB_LIMIT, pack
from balanced_source.errors import RefusedDiscoveryError, TransientDiscoveryError
from balanced_source_operator.runtime.calls import CallRunner
from balanced_source_operator.runtime.driver_calls import CallsThroughDriver
from balanced_source_spark.driver_calls import DriverCalls
from support.fake_kubernetes import FakeKubernetes
from testbed.waiting import wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFolder(Discover):
    """List a folder of the driver; with `is_open` a call that anybody may make."""

    scope: str
    round: int = 1
    is_open: bool = False


class FolderCodec(CallCodec):
    def call_to_json(self, call: AsyncCall) -> Any:
        assert isinstance(call, ListFolder)
        return {"folder": call.scope, "open": call.is_open}

    def call_from_json(self, data: Any) -> ListFolder:
        return ListFolder(scope=str(data["folder"]), is_open=bool(data["open"]))

    def result_to_json(self, call: AsyncCall, result: Any) -> Any:
        return sorted(result)

    def result_from_json(self, call: AsyncCall, data: Any) -> list[str]:
        if not all(isinstance(name, str) for name in data):
            raise ValueError("a name is no text")
        return list(data)


class FolderConnector(Connector):
    """Lists folders of whoever executes its calls."""

    kind = "folders"
    codec = FolderCodec()

    def __init__(self) -> None:
        self.callers = list[Caller]()

    def executor(self, secrets: SecretReader, *, caller: Caller, client_id: str) -> CallExecutor:
        def execute(call: AsyncCall) -> list[str]:
            assert isinstance(call, ListFolder)
            self.callers.append(caller)
            if not Path(call.scope).exists():
                raise RefusedDiscoveryError(
                    f"{call.scope} does not exist", scope=call.scope, reason="NoFolder"
                )
            return [path.name for path in Path(call.scope).iterdir()]

        return execute

    def identity_of(self, call: AsyncCall) -> Identity:
        return NamedSecrets() if isinstance(call, ListFolder) and call.is_open else DriverOnly()


class NoSecrets:
    def read(self, name: str) -> Mapping[str, str]:
        raise LookupError(name)


class Exchange:
    """Operator and driver, with documents as text between them.

    Attributes:
        incarnation: of the driver.
        largest: bytes of the largest report, as it is stored.
    """

    def __init__(self, connector: Connector | None = None) -> None:
        self.connector = connector or FolderConnector()
        self.operator = CallsThroughDriver(FolderCodec(), lambda: None)
        self.incarnation = 0
        self.largest = 0
        self.driver = self._new_driver()

    def _new_driver(self) -> DriverCalls:
        self.incarnation += 1
        return DriverCalls(lambda: self.connector, NoSecrets(), client_id="test")

    def restart_driver(self) -> None:
        self.driver.close()
        self.driver = self._new_driver()

    async def exchange(self) -> HostReport:
        """One round: the driver sees what is wanted, and the operator its report."""
        wanted = self.operator.wanted
        text = assignment_document.encode(
            Assignment(epoch=0, parallelism=1, calls=wanted), source="u"
        )
        self.driver.want(assignment_document.decode(text).calls, lambda: None)
        wait_until(
            lambda: all(f.done() for f in self.driver._running.values()),
            20,
            "calls to end",
            interval=0.01,
        )
        report = HostReport(incarnation=self.incarnation, answers=self.driver.answers())
        document = report_document.encode(report, source="u")
        blob = pack(document)
        self.largest = max(self.largest, *map(len, (*blob.data.values(), *blob.binary.values())))
        self.operator.take(report_document.decode(document))
        await asyncio.sleep(0)
        return report

    async def asked(self, folder: Path) -> "asyncio.Task[Any]":
        task = asyncio.create_task(self.operator.ask(ListFolder(scope=str(folder))))
        await asyncio.sleep(0)
        return task

    async def settle(self, task: "asyncio.Task[Any]", rounds: int = 200) -> Any:
        for _ in range(rounds):
            if task.done():
                return task.result()
            await self.exchange()
        raise AssertionError("no answer")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        (tmp_path / name).touch()
    return tmp_path


async def test_the_driver_lists_what_the_operator_must_not(folder: Path) -> None:
    world = Exchange()

    found = await world.settle(await world.asked(folder))

    assert found == ["a", "b"]
    assert isinstance(world.connector, FolderConnector)
    assert world.connector.callers == [Caller.OWNER]
    assert world.operator.wanted == ()
    assert (await world.exchange()).answers == (), "an answer that was heard is not repeated"


async def test_a_failure_is_the_driver_s_word(tmp_path: Path) -> None:
    world = Exchange()

    task = await world.asked(tmp_path / "nowhere")
    with pytest.raises(RefusedDiscoveryError, match="nowhere does not exist") as caught:
        await world.settle(task)

    assert (caught.value.scope, caught.value.reason) == (str(tmp_path / "nowhere"), "NoFolder")


async def test_a_driver_makes_no_call_that_the_operator_could_make(folder: Path) -> None:
    world = Exchange()

    task = asyncio.create_task(world.operator.ask(ListFolder(scope=str(folder), is_open=True)))
    await asyncio.sleep(0)
    with pytest.raises(TransientDiscoveryError, match="is not for a driver to make"):
        await world.settle(task)
    assert isinstance(world.connector, FolderConnector)
    assert world.connector.callers == []


class LargeConnector(FolderConnector):
    """A folder with many files of which no name repeats another."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count, self.seed = count, 0

    def executor(self, secrets: SecretReader, *, caller: Caller, client_id: str) -> CallExecutor:
        return lambda _: self.names()

    def names(self) -> list[str]:
        chance = random.Random(self.seed)
        return sorted(f"{chance.getrandbits(256):064x}" for _ in range(self.count))


async def test_a_large_listing_comes_in_pages_that_fit(tmp_path: Path) -> None:
    connector = LargeConnector(40_000)
    world = Exchange(connector)

    found = await world.settle(await world.asked(tmp_path))

    assert found == connector.names()
    assert world.largest <= BLOB_LIMIT * 4 / 3, "base64 of what fits into one ConfigMap"


async def test_pages_of_two_listings_are_never_joined(tmp_path: Path) -> None:
    """The driver restarts between two pages, and what it lists is different."""
    connector = LargeConnector(40_000)
    world = Exchange(connector)
    task = await world.asked(tmp_path)
    await world.exchange()
    await world.exchange()
    assert world.operator.wanted[0].page == 2
    former = world.driver.answers()

    world.restart_driver()
    connector.seed = 1
    await world.exchange()
    assert world.operator.wanted[0].page == 0, "it begins anew"
    world.operator.take(HostReport(incarnation=1, answers=former))

    assert await world.settle(task) == connector.names()


async def test_each_host_has_incarnations_of_its_own(folder: Path) -> None:
    """The driver of a host that was added later is younger, and no driver of the past."""
    world = Exchange()
    task = await world.asked(folder)
    digest, pages = call_documents.cut(["x"])
    answer = CallAnswer(id=world.operator.wanted[0].id, digest=digest, data=pages[0])

    world.operator.take(HostReport(host="0", incarnation=7))
    world.operator.take(HostReport(host="0", incarnation=6, answers=(answer,)))
    assert not task.done()
    world.operator.take(HostReport(host="1", incarnation=1, answers=(answer,)))

    assert await task == ["x"]


async def test_hosts_that_list_different_things_do_not_interrupt_each_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_documents, "PAGE", 8)
    world = Exchange()
    task = await world.asked(folder)
    listings = {host: call_documents.cut([f"{host}-{n}" for n in range(9)]) for host in "01"}
    at_page = 0

    while not task.done():
        for host, (digest, pages) in listings.items():
            wanted = world.operator.wanted
            page = min(wanted[0].page, len(pages) - 1) if wanted else 0
            answer = CallAnswer(
                id=wanted[0].id if wanted else "",
                digest=digest,
                page=page,
                pages=len(pages),
                data=pages[page],
            )
            world.operator.take(HostReport(host=host, incarnation=1, answers=(answer,)))
        at_page += 1
        await asyncio.sleep(0)
        assert at_page <= len(listings["0"][1]), "each round brings a page"

    assert await task == [f"0-{n}" for n in range(9)]


async def test_what_is_too_large_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_documents, "MAX_PAGES", 2)
    world = Exchange(LargeConnector(40_000))

    task = await world.asked(tmp_path)
    with pytest.raises(TransientDiscoveryError, match="are too many"):
        await world.settle(task)


async def test_a_driver_that_ends_starts_no_call(folder: Path) -> None:
    """It still writes a last report, and may see another assignment."""
    world = Exchange()
    task = await world.asked(folder)
    world.driver.close()

    assert (await world.exchange()).answers == ()
    assert not task.done()
    world.restart_driver()
    assert await world.settle(task) == ["a", "b"]


async def test_an_answer_to_a_previous_operator_is_ignored(folder: Path) -> None:
    world = Exchange()
    await world.asked(folder)
    report = await world.exchange()

    world.operator = CallsThroughDriver(FolderCodec(), lambda: None)
    task = await world.asked(folder)
    world.operator.take(report)
    await asyncio.sleep(0)

    assert not task.done()
    assert await world.settle(task) == ["a", "b"]


@pytest.mark.parametrize(
    "answer",
    [
        CallAnswer(id="", digest="00", data="no base64"),
        CallAnswer(
            id="", digest=call_documents.cut({"not": 1})[0], data=call_documents.cut([1, 2])[1][0]
        ),
        CallAnswer(
            id="", digest=call_documents.cut([1, 2])[0], data=call_documents.cut([1, 2])[1][0]
        ),
        CallAnswer(id="", digest=call_documents.cut(None)[0], data=call_documents.cut(None)[1][0]),
        CallAnswer(id="", digest="00", pages=MAX_PAGES + 1),
    ],
)
async def test_a_hostile_answer_is_a_failure(folder: Path, answer: CallAnswer) -> None:
    world = Exchange()
    task = await world.asked(folder)

    world.operator.take(
        HostReport(incarnation=1, answers=(replace(answer, id=world.operator.wanted[0].id),))
    )

    with pytest.raises(TransientDiscoveryError, match="the driver's answer cannot be read"):
        await task


async def test_the_operator_executes_nothing_itself(folder: Path) -> None:
    connector, answers = FolderConnector(), asyncio.Queue[CallCompleted]()
    changed = asyncio.Event()
    runner = CallRunner(
        FakeKubernetes().client(),
        "default",
        Unused(),
        answers.put_nowait,
        source="orders",
        connector=connector,
        changed=changed.set,
    )

    runner.submit(ExecuteCall(call_id=7, call=ListFolder(scope=str(folder)), delay=0.0))
    await changed.wait()

    assert runner.driver is not None
    (wanted,) = runner.driver.wanted
    assert wanted == WantedCall(id=wanted.id, call={"folder": str(folder), "open": False})
    assert connector.callers == []
    digest, pages = call_documents.cut(["x"])
    runner.driver.take(
        HostReport(incarnation=1, answers=(CallAnswer(id=wanted.id, digest=digest, data=pages[0]),))
    )
    assert (await answers.get()).result == ["x"]
    runner.close()


class Unused:
    """A pool of threads that no one may use."""

    async def run(self, lane: Any, function: CallExecutor, call: Any) -> Any:
        raise AssertionError("the operator lends nobody its identity")

    def forget(self, owner: Any) -> None:
        """Nothing is remembered."""


def test_a_call_has_only_fields_that_the_codec_writes() -> None:
    call = WantedCall(id="a-1", call={"folder": "/data"})

    assert json.loads(json.dumps(call_documents.encode_calls([call]))) == [
        {"id": "a-1", "call": {"folder": "/data"}, "page": 0}
    ]
