"""Group M: which reader gets a file, with upstream's setup.

A file is a list of numbers here; blocks of real files are dealt out by the same enumerator.
"""

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from balanced_source.api import (
    ReaderInfo,
    SourceEvent,
    SplitEnumeratorContext,
    SplitId,
    SplitsAssignment,
)
from balanced_source.connectors.files import BlockSplit, File, FilesSource, Format
from balanced_source.connectors.pull.dealing import dealt
from balanced_source.connectors.pull.enumerator import PullingSplitEnumerator
from balanced_source.connectors.pull.values import PullState
from support.pull_source import NumberLists, Numbers


class Readers(SplitEnumeratorContext[Numbers]):
    """Readers that are registered, and what they were given."""

    def __init__(self, *registered: int) -> None:
        self.registered = {reader: info(reader) for reader in registered}
        self.given: dict[int, list[str]] = {}
        self.owners: dict[SplitId, int] = {}
        self.told_the_end: list[int] = []
        self.calls: list[Any] = []

    def now(self) -> float:
        return 0.0

    def current_parallelism(self) -> int:
        return 4

    def registered_readers(self) -> Mapping[int, ReaderInfo[Numbers]]:
        return self.registered

    def current_assignments(self) -> Mapping[SplitId, int]:
        return self.owners

    def assigned_split(self, split_id: SplitId) -> Numbers:
        return Numbers(name=str(split_id[1]))

    def assign_splits(self, new_assignments: SplitsAssignment[Numbers]) -> None:
        for reader, splits in new_assignments.assignment.items():
            self.given.setdefault(reader, []).extend(split.name for split in splits)
            self.owners |= {split.split_id: reader for split in splits}

    def revoke_splits(self, split_ids: Iterable[SplitId], *, retain: bool = False) -> None:
        raise AssertionError("nothing is taken away here")

    def is_revoking(self, split_id: SplitId) -> bool:
        return False

    def forget_splits(self, split_ids: Iterable[SplitId]) -> None:
        for split_id in split_ids:
            self.owners.pop(split_id, None)

    def signal_no_more_splits(self, subtask_id: int) -> None:
        self.told_the_end.append(subtask_id)

    def send_event_to_reader(self, subtask_id: int, event: SourceEvent) -> None:
        raise AssertionError("no messages here")

    def call_async(self, call: Any, handler: Any, **times: Any) -> None:
        self.calls.append((call, handler))

    def report(self, reason: str, message: str, *, warning: bool = False) -> None:
        raise AssertionError(message)


def info(reader: int) -> ReaderInfo[Numbers]:
    return ReaderInfo(subtask_id=reader)


class Enumerated:
    """An enumerator of some files, and its readers."""

    def __init__(self, files: int, *registered: int) -> None:
        self.source = NumberLists(count=files)
        self.readers = Readers(*registered)
        self.enumerator = PullingSplitEnumerator[Numbers](self.readers, self.source, PullState())
        self.enumerator.start()

    def finds(self) -> "Enumerated":
        """The listing is answered."""
        ((call, handler),) = self.readers.calls
        handler(call, self.source.execute(call))
        return self

    @property
    def pending(self) -> list[str]:
        return [str(split_id[1]) for split_id in self.enumerator.snapshot_state().pending]


@pytest.mark.scenario("M1")
def test_m1_a_file_that_no_reader_requests_stays_in_the_state() -> None:
    """It is found, and no reader asks: a snapshot has it."""
    scene = Enumerated(1).finds()

    assert scene.pending == ["list-0"]
    assert scene.readers.given == {}


@pytest.mark.scenario("M2")
def test_m2_a_reader_that_waits_gets_the_file_when_it_is_found() -> None:
    """Reader 2 has asked before; afterwards the snapshot is empty."""
    scene = Enumerated(1, 2)
    scene.enumerator.handle_split_request(2, None)

    scene.finds()

    assert scene.readers.given == {2: ["list-0"]}
    assert scene.pending == []


@pytest.mark.scenario("M3")
def test_m3_a_reader_that_has_gone_gets_nothing() -> None:
    """Reader 2 has asked, and is not registered any more: the file stays."""
    scene = Enumerated(1, 2)
    scene.enumerator.handle_split_request(2, None)
    scene.readers.registered.clear()

    scene.finds()

    assert scene.readers.given == {}
    assert scene.pending == ["list-0"]


@pytest.mark.scenario("M4")
def test_m4_only_registered_readers_are_answered() -> None:
    """Reader 3 is not registered: its request is ignored. Reader 1 gets the only file.

    Its second request is answered with the end.
    """
    scene = Enumerated(1, 1).finds()

    scene.enumerator.handle_split_request(3, None)
    assert scene.pending == ["list-0"]
    scene.enumerator.handle_split_request(1, None)
    scene.enumerator.handle_split_request(1, None)

    assert scene.readers.given == {1: ["list-0"]}
    assert scene.readers.told_the_end == [1]


def local(near: Mapping[str, str], requests: Mapping[int, tuple[str, int]]) -> Counter[bool]:
    """Return how many splits went to a reader on their own host, and how many did not.

    Args:
        near: split → its host.
        requests: reader → its host, and how many splits it asks for.
    """
    pending = {("lists", name): Numbers(name=name) for name in near}
    given = dealt(
        pending,
        {reader: count for reader, (_, count) in requests.items()},
        [lambda split, reader: near[split.name] == requests[reader][0]],
    )
    return Counter(
        near[split.name] == requests[reader][0]
        for reader, splits in given.items()
        for split in splits
    )


def hosts(*counts: int) -> dict[str, str]:
    """Splits, so many on each of the hosts host-0, host-1 and so on."""
    return {
        f"{host}-{number}": f"host-{host}"
        for host, count in enumerate(counts)
        for number in range(count)
    }


@pytest.mark.scenario("M5", "M7")
@pytest.mark.parametrize("host", ["", "elsewhere"])
def test_m5_readers_that_are_near_to_no_file_get_them_all_the_same(host: str) -> None:
    """50 files: none is local, whether the host of the reader is unknown or another one."""
    assert local(hosts(50), {0: (host, 50)}) == {False: 50}


@pytest.mark.scenario("M6")
def test_m6_a_reader_on_the_host_of_all_files_reads_them_locally() -> None:
    """50 files on its host: 50 are local."""
    assert local(hosts(50), {0: ("host-0", 50)}) == {True: 50}


@pytest.mark.scenario("M8")
def test_m8_files_go_to_readers_on_their_own_hosts_first() -> None:
    """20, 10 and 30 files on three hosts, and a reader on each that asks for 20.

    50 are local; the last 10 go to the reader that has room. Upstream, whose readers ask one after
    another, has 30 local ones.
    """
    requests = {reader: (f"host-{reader}", 20) for reader in range(3)}

    assert local(hosts(20, 10, 30), requests) == {True: 50, False: 10}


@pytest.mark.scenario("M10")
@pytest.mark.parametrize("seed", range(5))
def test_m10_random_requests_get_each_file_once(seed: int) -> None:
    """1,000 requests of random readers, some of which come and go."""
    chance, scene = random.Random(seed), Enumerated(300, 0, 1, 2, 3).finds()
    for _ in range(1000):
        reader = chance.randrange(5)
        if chance.random() < 0.1:
            scene.readers.registered.pop(reader, None)
        elif chance.random() < 0.2:
            scene.readers.registered[reader] = info(reader)
            scene.enumerator.add_reader(reader)
        scene.enumerator.handle_split_request(reader, None)

    given = Counter(name for names in scene.readers.given.values() for name in names)
    assert set(given.values()) == {1}
    assert len(given) + len(scene.pending) == 300
    assert given.keys().isdisjoint(scene.pending)


@pytest.mark.scenario("M12")
def test_m12_the_largest_blocks_go_first() -> None:
    """Files of 100, 1, 1, 1, 1, 20 and 7 MB, and four readers that ask whenever they are done.

    Upstream proposes groups that are made in advance. Ours deals the largest first to whoever has
    nothing to do, and no reader has more than its fair share or the largest file.
    """
    sizes = [100, 1, 1, 1, 1, 20, 7]
    source = FilesSource(paths=("/in",), kind_of_file=Format.TEXT)
    blocks = [block(f"/in/{number}", size) for number, size in enumerate(sizes)]
    blocks.sort(key=source.priority, reverse=True)
    pending, loads = {each.split_id: each for each in blocks}, dict.fromkeys(range(4), 0)
    while pending:
        idle = min(loads, key=lambda reader: (loads[reader], reader))
        (given,) = dealt(pending, {idle: 1})[idle]
        loads[idle] += given.stop
        del pending[given.split_id]

    assert sorted(loads.values()) == [4, 7, 20, 100]


def block(path: str, size: int) -> BlockSplit:
    file = File(modified=1, path=path, size=size)
    return BlockSplit(file=file, begin=0, offset=0, stop=size)
