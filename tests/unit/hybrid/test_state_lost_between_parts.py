"""The state is lost when one part is read, and the next one has not begun: nothing comes twice."""

import json
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StringType, StructType

from balanced_source.api import ReaderInfo, SplitsAssignment
from balanced_source.connectors.discovery import DiscoveryState
from balanced_source.connectors.hybrid import checked_hybrid
from balanced_source.connectors.hybrid.enumerator import HybridSplitEnumerator
from balanced_source.connectors.hybrid.state import HybridState
from balanced_source.connectors.hybrid.values import HybridSplit
from balanced_source.coordinator.context import CoordinatorContext
from balanced_source.documents import stream_offset
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import TransientDiscoveryError
from balanced_source_adapters.registrations import registered
from balanced_source_spark.control import CONTROL, request_parallelism
from support.hybrid_world import AssignedLists
from support.lines_query import KIND, LinesQuery, registration
from support.pull_source import Numbers
from testbed.waiting import wait_until
from unit.hybrid.test_enumerator import enumerator_of, with_readers

FIRST = ["first 0", "first 1", "first 2"]
FILES = ["file 0", "file 1"]


@dataclass
class Between:
    """A query whose last part does not answer yet.

    Attributes:
        folder: has those of the parts.
        has_files: whether there is a part of files between two others.
    """

    folder: Path
    has_files: bool = False
    options: dict[str, str] = field(init=False)
    query: LinesQuery = field(init=False)

    def __post_init__(self) -> None:
        first, second = self.folder / "first", self.folder / "second"
        first.mkdir()
        for number in range(3):
            (first / f"{number}.txt").write_text(f"first {number}\n")
        parts = [{"connector": KIND, "folders": str(folder)} for folder in (first, second)]
        if self.has_files:
            parts.insert(1, self._files())
        self.options = {
            "connector": "hybrid",
            "parts": json.dumps(parts),
            "stateDir": str(self.folder / "state"),
        }
        self.query = LinesQuery(first)
        if self.has_files:
            self.query.schema = StructType().add("file", StringType()).add("line", StringType())
        self.query.begin(**self.options)

    def _files(self) -> dict[str, str]:
        (self.folder / "files").mkdir()
        for number in range(2):
            (self.folder / "files" / f"{number}.csv").write_text(f"x,file {number}\n")
        known = {"path": str(self.folder / "files"), "fileFormat": "csv"}
        columns = "file STRING, line STRING"
        return {"connector": "files", "metadataColumns": "false", "schema": columns, **known}

    @property
    def offset(self) -> StreamOffset:
        """The newest one."""
        return stream_offset.from_json(self.query.offsets[-1])

    def reads_all_but_last(self) -> None:
        """Run micro-batches until the other parts are read, and no split of them is left."""
        count = len(FIRST) + len(FILES) * self.has_files

        def is_read() -> bool:
            self.query.trigger()
            return len(self.query.lines) == count and not self.offset.positions

        wait_until(is_read, 30, "the other parts", interval=0.05)

    def reads_last(self) -> None:
        """Let the last part answer, and run micro-batches until it is read."""
        made = self.folder / "hidden"
        made.mkdir()
        (made / "a.txt").write_text("second 0\n")
        made.rename(self.folder / "second")

        def is_read() -> bool:
            self.query.trigger()
            return "second 0" in self.query.lines

        wait_until(is_read, 30, "the last part", interval=0.05)

    def idles(self, seconds: float = 1.0) -> None:
        """Run micro-batches for a while."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.query.trigger()
            time.sleep(0.05)

    def rescales(self, readers: int) -> None:
        shown: Any = self.query.planner.reportLatestOffset()
        request_parallelism(Path(shown[CONTROL]), readers)
        self.options["parallelism"] = str(readers)
        wait_until(self._has_readers, 30, f"{readers} readers", interval=0.05)

    def _has_readers(self) -> bool:
        self.query.trigger()
        return self.offset.parallelism == int(self.options["parallelism"])

    def restarts(self) -> None:
        self.query.planner.stop()
        self.query.begin(**self.options)

    def loses_state(self) -> None:
        self.query.planner.stop()
        shutil.rmtree(self.folder / "state")
        self.query.begin(**self.options)


@pytest.fixture(params=[False], ids=[""])
def between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Between]:
    monkeypatch.setitem(registered()._by_kind, KIND, {"page": registration()})
    made = Between(tmp_path, has_files=request.param)
    files: Any = sys.modules["lines_connector"].Files
    answered = files.execute

    def execute(own: Any, call: Any) -> Any:
        if (scope := getattr(call, "scope", "")).endswith("second") and not Path(scope).exists():
            raise TransientDiscoveryError(f"{scope} does not answer", scope=scope)
        return answered(own, call)

    monkeypatch.setattr(files, "execute", execute)
    yield made
    made.query.planner.stop()


@pytest.mark.parametrize("readers", [(), (3, 1)])
@pytest.mark.parametrize("has_restarted", [False, True])
def test_what_was_read_is_not_read_again(
    between: Between, readers: tuple[int, ...], *, has_restarted: bool
) -> None:
    """Whatever happens meanwhile, Spark's checkpoint names the splits that were read."""
    between.reads_all_but_last()
    if has_restarted:
        between.restarts()
        between.idles()
    for number in readers:
        between.rescales(number)

    between.loses_state()
    between.idles()
    between.loses_state()
    between.idles(0.3)
    between.reads_last()

    assert sorted(between.query.lines) == [*FIRST, "second 0"]


@pytest.mark.parametrize("between", [True], indirect=True, ids=["files"])
@pytest.mark.parametrize("has_restarted", [False, True])
def test_files_between_two_parts_are_not_read_again(
    between: Between, *, has_restarted: bool
) -> None:
    """The checkpoint does not say which of them were read, so someone has to decide."""
    between.reads_all_but_last()
    if has_restarted:
        between.restarts()
        between.idles()
    between.rescales(3)

    between.loses_state()
    between.idles()

    shown: Any = between.query.planner.reportLatestOffset()
    assert "unknown what was read already of 2 splits. Nothing" in shown["problems"][0]
    assert sorted(between.query.lines) == [*FILES, *FIRST]


def test_the_checkpoint_forgets_what_was_read_when_the_next_part_has_splits(
    between: Between,
) -> None:
    between.reads_all_but_last()
    between.restarts()
    between.rescales(3)
    assert len(between.offset.retained) == 3

    between.reads_last()
    between.rescales(2)

    assert {split_id[0] for split_id in between.offset.retained} <= {f"{KIND}-1"}


def between_parts() -> tuple[HybridSplitEnumerator, CoordinatorContext[Any], HybridSplit]:
    """Return an enumerator that has begun its second part, whose splits are not known yet."""
    lists: Any = AssignedLists(count=1)
    source = checked_hybrid([(lists, None), (lists, None)], field="parts")
    split = HybridSplit(part=source.names[0], split=Numbers(name="list-0", number=2, stop=2))
    state = HybridState(
        part=source.names[1], state=DiscoveryState(), kept=frozenset({split.split_id})
    )
    enumerator = enumerator_of(source, source.decode_state(1, source.encode_state(state)))
    context = with_readers(
        enumerator,
        ReaderInfo(subtask_id=0, reported_splits=(split,)),
        ReaderInfo(subtask_id=1, retained_splits=(split,)),
        retained=frozenset({split.split_id}),
    )
    return enumerator, context, split


def test_the_checkpoint_keeps_the_former_part_until_the_present_one_has_splits() -> None:
    """Without it, no one would know after a loss of the state that the part was read."""
    enumerator, context, split = between_parts()

    enumerator.add_readers([0, 1])
    assert context.state.retained == enumerator.fork(context).kept == {split.split_id}

    given: Any = SplitsAssignment(assignment={0: [Numbers(name="list-7", stop=2)]})
    enumerator.part.context.assign_splits(given)
    assert context.state.retained == enumerator.snapshot_state().kept == frozenset()


def test_a_former_part_that_an_older_checkpoint_has_not_read_is_not_kept_but_read() -> None:
    enumerator, context, split = between_parts()
    unread = split.at(1)
    context.set_readers({0: ReaderInfo(subtask_id=0, reported_splits=(unread,))})

    enumerator.add_readers([0])

    assert context.assigned_split(split.split_id) == unread
    assert enumerator.snapshot_state().kept == frozenset()
