"""The number of readers of a query without an operator, changed by the program that started it."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from balanced_source.errors import InvalidSpecError
from balanced_source_spark import rescale
from balanced_source_spark.channels.channel import Rescalable
from balanced_source_spark.channels.embedded import EmbeddedChannel
from balanced_source_spark.channels.folder import FolderChannel
from balanced_source_spark.control import MOST, PARALLELISM, Control
from balanced_source_spark.rescaling import RescaleError
from support.planned_query import PlannedQuery, all_of
from support.world import Broker, kafka_source


def query(*sources: object, is_active: bool = True) -> Any:
    progress = {"sources": [{"latestOffset": source} for source in sources]} if sources else None
    return SimpleNamespace(id="q", isActive=is_active, lastProgress=progress)


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


@pytest.mark.parametrize("text", ["", "many", "0", "-1", str(MOST + 1), "²", "9" * 5000])
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
    rescale(query('{"0": 7}', None, of(control), {"control": str(control.folder)}), 4)
    control.look()

    assert wanted == [4]


@pytest.mark.parametrize("parallelism", [0, -1, MOST + 1])
def test_an_invalid_number_is_rejected(parallelism: int) -> None:
    with pytest.raises(
        InvalidSpecError, match=f"parallelism: expected 1 to {MOST} readers, not {parallelism}"
    ):
        rescale(query(), parallelism)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (
            query(is_active=False),
            "query q is not running: start it again, with the option parallelism",
        ),
        (query(), "query q has shown no progress yet"),
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
