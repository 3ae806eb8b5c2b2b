"""The number of readers of a query without an operator, changed by the program that started it."""

import json
import shutil
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from balanced_source.documents.assignment import Assignment
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import InvalidSpecError
from balanced_source_spark import rescale
from balanced_source_spark.channels.channel import Rescalable
from balanced_source_spark.channels.embedded import EmbeddedChannel
from balanced_source_spark.channels.folder import FolderChannel
from balanced_source_spark.control import MOST_READERS, PARALLELISM, Control, request_parallelism
from balanced_source_spark.planner_figures import PlannerFigures
from balanced_source_spark.rescaling import RescaleError
from support.planned_query import PlannedQuery, all_of
from support.world import Broker, kafka_source

OURS = "org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStream@1b2c"
"""As Spark describes a source that is written in Python."""


def query(*sources: object, is_active: bool = True, name: str | None = None) -> Any:
    return SimpleNamespace(
        id="q", name=name, isActive=is_active, lastProgress=_progress(sources) if sources else None
    )


def _progress(sources: Iterable[object], description: str = OURS) -> Mapping[str, Any]:
    return {"sources": [{"latestOffset": each, "description": description} for each in sources]}


def of(control: Control) -> str:
    return json.dumps({"lag": 0, "control": str(control.folder)})


def test_the_planner_gets_the_requested_number_of_readers(
    control: Control, wanted: list[int]
) -> None:
    control.look()
    rescale(query(of(control)), 5)
    control.look()
    control.look()
    rescale(query(of(control)), 3)
    control.look()

    assert wanted == [5, 3]
    assert control.folder.stat().st_mode & 0o077 == 0, "others could rescale the query"


@pytest.mark.parametrize("text", ["", "many", "0", "-1", str(MOST_READERS + 1), "²", "9" * 5000])
def test_an_invalid_number_of_readers_is_logged_once_and_ignored(
    control: Control, wanted: list[int], text: str
) -> None:
    (control.folder / PARALLELISM).write_text(text)

    with capture_logs() as lines:
        control.look()
        control.look()

    assert wanted == []
    assert len(lines) == (1 if text else 0)


def test_all_sources_of_a_query_are_rescaled_and_others_are_left_alone(
    control: Control, wanted: list[int]
) -> None:
    rescale(query('{"0": 7}', None, "t: 7", of(control), {"control": str(control.folder)}), 4)
    control.look()

    assert wanted == [4]


@pytest.mark.parametrize("parallelism", [1, MOST_READERS])
def test_the_least_and_the_largest_number_of_readers_are_accepted(
    control: Control, wanted: list[int], parallelism: int
) -> None:
    rescale(query(of(control)), parallelism)
    control.look()

    assert wanted == [parallelism]


@pytest.mark.parametrize("parallelism", [0, -1, MOST_READERS + 1])
def test_an_invalid_number_is_rejected(parallelism: int) -> None:
    with pytest.raises(
        InvalidSpecError,
        match=f"parallelism: expected 1 to {MOST_READERS} readers, not {parallelism}",
    ):
        rescale(query(), parallelism)


@pytest.mark.parametrize(
    ("parallelism", "found"), [(2.5, "2.5"), ("4", "'4'"), (True, "True"), (None, "None")]
)
def test_what_is_no_whole_number_is_rejected(
    control: Control, wanted: list[int], parallelism: Any, found: str
) -> None:
    with pytest.raises(
        InvalidSpecError, match=f"parallelism: expected a whole number of readers, not {found}"
    ):
        rescale(query(of(control)), parallelism)
    control.look()

    assert wanted == []


@pytest.mark.parametrize(
    ("given", "found"),
    [("orders", "'orders'"), (None, "None"), (object(), "an object of type object")],
)
def test_what_is_no_query_is_rejected(given: object, found: str) -> None:
    with pytest.raises(InvalidSpecError) as caught:
        rescale(given, 3)

    assert (
        str(caught.value)
        == f"query: expected the query that writeStream.start() returned, not {found}"
    )


@pytest.mark.parametrize(("name", "shown"), [(None, "q"), ("orders", "orders")])
def test_a_query_that_has_ended_is_said_to_have_ended(
    control: Control, name: str | None, shown: str
) -> None:
    """Its last progress still names a folder, which went with the query."""
    ended = query(of(control), is_active=False, name=name)
    control.close()

    with pytest.raises(
        RescaleError, match=f"query {shown} has ended: start it again with the option parallelism"
    ):
        rescale(ended, 3)


def test_a_query_that_has_failed_is_not_said_to_have_ended(control: Control) -> None:
    failed = query(of(control), is_active=False)
    failed.exception = lambda: ValueError("no Python worker")

    with pytest.raises(
        RescaleError,
        match=r"query q has failed: query\.exception\(\) says why\. Correct that, start",
    ):
        rescale(failed, 3)


def test_a_query_that_ends_meanwhile_is_said_to_have_ended(control: Control) -> None:
    class Ending:
        id = "q"
        lastProgress = _progress([of(control)])  # noqa: N815 - the name that Spark gives it

        @property
        def isActive(self) -> bool:  # noqa: N802 - the name that Spark gives it
            was = control.folder.exists()
            shutil.rmtree(control.folder, ignore_errors=True)
            return was

    with pytest.raises(RescaleError, match="query q has ended"):
        rescale(Ending(), 3)


def test_a_query_of_another_source_is_recognised_by_its_first_progress() -> None:
    other = SimpleNamespace(
        id="q", isActive=True, lastProgress=_progress([None], "RateStreamV2[rowsPerSecond=1]")
    )
    begin = time.monotonic()

    with pytest.raises(RescaleError, match="query q has no balanced source"):
        rescale(other, 3)
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize("others", [(), ('{"t": {"0": 1}}',)], ids=["alone", "beside another"])
@pytest.mark.parametrize("nothing", [None, "null"])
def test_a_query_that_repeats_a_micro_batch_is_waited_for(
    control: Control, wanted: list[int], nothing: str | None, others: tuple[str, ...]
) -> None:
    class Repeating:
        id, isActive, looks = "q", True, 0  # noqa: N815 - the name that Spark gives it

        @property
        def lastProgress(self) -> Mapping[str, Any]:  # noqa: N802 - the name that Spark gives it
            self.looks += 1
            return _progress([*others, nothing if self.looks < 3 else of(control)])

    rescale(Repeating(), 3)
    control.look()

    assert wanted == [3]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (query(is_active=False), "query q has ended: start it again with the option parallelism"),
        (query(), "query q has shown no progress yet"),
        (query(None), "query q has no balanced source that its driver assigns"),
        (
            query('{"t": {"0": 1}}'),
            "no balanced source that its driver assigns. With an operator use kubectl scale",
        ),
        (
            query('{"control": "/nowhere/else"}'),
            "/nowhere/else of the query is not on this machine",
        ),
    ],
)
def test_where_it_cannot_be_changed_the_error_says_where_it_can(asked: Any, says: str) -> None:
    with pytest.raises(RescaleError, match=says):
        rescale(asked, 2, timeout=0)


def test_the_folder_is_removed_with_the_query(control: Control) -> None:
    control.close()

    assert not control.folder.exists()
    control.look()


def test_only_a_driver_that_assigns_by_itself_can_be_rescaled_by_its_program(
    tmp_path: Path,
) -> None:
    assert isinstance(EmbeddedChannel(kafka_source("c"), lambda _: None, parallelism=1), Rescalable)
    assert not isinstance(FolderChannel(tmp_path, source="u"), Rescalable)


def test_the_planner_follows_its_program_before_and_after_a_restart() -> None:
    """The real planner and coordinator.

    The next micro-batches have the wanted number of readers.
    """
    broker = Broker()
    broker.create("c", "t", range(8), end=3)
    planned = PlannedQuery(source=kafka_source("c"), broker=broker, parallelism=1)
    try:
        for wanted in (4, 2):
            planned.planner.__dict__["_channel"] = planned.channel
            planned.trigger_until(lambda: planned.last.parallelism == 1, "one reader")
            rescale(query(json.dumps(planned.planner.reportLatestOffset())), wanted)
            planned.trigger_until(
                lambda wanted=wanted: planned.last.parallelism == wanted, f"{wanted} readers"
            )
            broker.ends |= {split_id: end + 1 for split_id, end in broker.ends.items()}
            planned.trigger_until(lambda: planned.records == all_of(broker), "all records, once")
            planned.restart()
    finally:
        planned.close()


def test_an_idle_query_shows_its_new_number_of_readers_at_once_and_names_those_without_splits() -> (
    None
):
    broker = Broker()
    broker.create("c", "t", range(3), end=3)
    planned = PlannedQuery(source=kafka_source("c"), broker=broker, parallelism=2)
    try:
        planned.planner.__dict__["_channel"] = planned.channel
        planned.trigger_until(lambda: planned.records == all_of(broker), "all records")
        planned.trigger()
        assert planned.planner.reportLatestOffset()["parallelism"] == 2
        with capture_logs() as lines:
            planned.channel.rescale(5)
            planned.trigger_until(lambda: planned.last.parallelism == 5, "five readers")

        assert planned.planner.reportLatestOffset()["parallelism"] == 5
        said = [line["event"] for line in lines if "no split for" in line["event"]]
        assert len(said) == 1
        assert said[0].startswith("no split for 2 of 5 readers, because the source has 3 splits: ")
    finally:
        planned.close()


@pytest.mark.parametrize(("look_ahead", "lines"), [(0, 1), (2, 0)])
def test_readers_that_ask_for_splits_are_not_said_to_be_idle(look_ahead: int, lines: int) -> None:
    """They get theirs later."""
    figures: Any = PlannerFigures()
    newest = Assignment(lineage=1, epoch=2, parallelism=5, owners={}, look_ahead=look_ahead)
    runtime = SimpleNamespace(newest_assignment=lambda **_: newest)
    figures.__dict__ |= {"_control": None, "_runtime": runtime}
    before = StreamOffset(epoch=1, parallelism=2)
    after = StreamOffset(epoch=2, parallelism=5, owners={("c", "t", 0): 0})

    with capture_logs() as told:
        figures._tell_idle_readers(before, after)
        assert told == [], "no program has rescaled the query"
        figures._control = object()
        figures._tell_idle_readers(before, before)
        assert told == [], "as many readers as before"
        figures._tell_idle_readers(before, after)

    assert len(told) == lines


def test_two_threads_of_a_program_may_rescale_at_once(
    control: Control, wanted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one asks while the first one has written its number, and not put it in place."""
    put, others = Path.replace, iter([7])

    def replace(self: Path, target: Path) -> Path:
        if (other := next(others, None)) is not None:
            request_parallelism(control.folder, other)
        return put(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    request_parallelism(control.folder, 5)
    control.look()

    assert wanted == [5]
    assert [path.name for path in control.folder.iterdir()] == [PARALLELISM]


def test_a_folder_that_goes_while_it_is_written_to_is_told_of_as_one_that_is_gone(
    control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace(_: Path, target: Path) -> Path:
        raise FileNotFoundError(target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(RescaleError, match="of the query is not on this machine"):
        request_parallelism(control.folder, 5)
