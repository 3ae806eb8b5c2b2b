"""``status`` and ``top`` show what local mode found wrong, and whether it still runs."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from balanced_source.api import Problem
from balanced_source.documents import report as report_document
from balanced_source.documents.report import HostReport
from balanced_source.errors import InvalidSpecError
from balanced_source_adapters.folder import report_path
from balanced_source_operator.cli import app
from balanced_source_operator.laptop.run import Ending, _noted
from balanced_source_operator.local import UID, LocalOperator
from balanced_source_operator.local_notes import LocalNotes, RecordedRun, read_run
from support.builders import source_body

LOST = Problem(reason="LogTruncated", message="offsets 7 to 9 of orders/0 are gone", scope="main")


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[LocalOperator]:
    """Serves a source, whose driver has reported a problem."""
    file, folder = tmp_path / "orders.yaml", tmp_path / "documents"
    file.write_text(yaml.safe_dump(source_body()))
    made = LocalOperator(file, folder)
    report = HostReport(incarnation=1, sequence=1, problems=(LOST,))
    report_path(folder, "0").write_text(report_document.encode(report, source=UID))
    made.start()
    made.look()
    yield made
    made.close()


def shown(command: str, folder: Path) -> str:
    result = CliRunner().invoke(app, [command, "--dir", str(folder)], env={"COLUMNS": "300"})
    assert result.exit_code == 0, result.output
    return result.stdout


def notes(folder: Path) -> list[str]:
    result = CliRunner().invoke(app, ["status", "--dir", str(folder), "-o", "json"])
    (found,) = json.loads(result.stdout.splitlines()[-1])
    return [str(note) for note in found["notes"]]


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("command", ["status", "top"])
def test_problems_of_a_running_source_are_shown(tmp_path: Path, command: str) -> None:
    text = shown(command, tmp_path / "documents")

    assert LOST.message in text
    assert "no run is active" not in text
    assert LOST.message in notes(tmp_path / "documents")


@pytest.mark.parametrize("command", ["status", "top"])
def test_the_state_of_a_run_that_is_over_is_not_shown_as_if_it_ran(
    operator: LocalOperator, tmp_path: Path, command: str
) -> None:
    operator.close()
    text = shown(command, tmp_path / "documents")

    assert LOST.message in text
    assert "no run is active: this is the state of the last one\n" in text
    assert notes(tmp_path / "documents")[-1].startswith("no run is active: ")


def end_in_order() -> Ending:
    return Ending(0, "stopped after batch 3 (70 rows in this run)")


def fail() -> Ending:
    raise InvalidSpecError("the query failed", field="driver.log")


def test_the_way_in_which_a_run_has_ended_is_shown(operator: LocalOperator, tmp_path: Path) -> None:
    _noted(operator, end_in_order)
    operator.close()

    assert notes(tmp_path / "documents")[-1].endswith(
        "the last one, which stopped after batch 3 (70 rows in this run)"
    )


def test_the_failure_of_a_query_is_shown(operator: LocalOperator, tmp_path: Path) -> None:
    with pytest.raises(InvalidSpecError):
        _noted(operator, fail)
    operator.close()

    assert notes(tmp_path / "documents")[-1].endswith("which failed: driver.log: the query failed")


def test_what_takes_effect_at_the_next_start_is_shown(
    operator: LocalOperator, tmp_path: Path
) -> None:
    operator.also_note({("changes",): "spec.application.image changed"})
    operator.look()

    assert "spec.application.image changed" in notes(tmp_path / "documents")


def test_the_next_run_forgets_how_the_former_one_has_ended(tmp_path: Path) -> None:
    former = LocalNotes(tmp_path)
    former.begin()
    former.note({("a",): "it is wrong"})
    former.end("failed")
    former.close()
    assert read_run(tmp_path) == RecordedRun(
        is_active=False, problems={("a",): "it is wrong"}, ending="failed"
    )

    newer = LocalNotes(tmp_path)
    newer.begin()
    assert read_run(tmp_path) == RecordedRun(is_active=True)
    newer.close()


def test_nothing_secret_is_written_down(tmp_path: Path) -> None:
    found = LocalNotes(tmp_path)
    found.note({("a",): "cannot log in at https://me:hunter2@host"})
    found.end("failed: https://me:hunter2@host")

    assert not re.search("hunter2", (tmp_path / "notes.json").read_text())


@pytest.mark.parametrize(
    "stored", ["{", "[]", "{}", '{"problems": [1, {"key": 1}], "ending": ""}', '{"problems": 7}']
)
def test_a_damaged_file_is_as_none(tmp_path: Path, stored: Any) -> None:
    (tmp_path / "notes.json").write_text(stored)

    assert read_run(tmp_path) == RecordedRun()


def test_a_folder_that_cannot_be_written_is_no_reason_to_stop(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = LocalNotes(tmp_path / "file")
    found.begin()
    found.note({("a",): "it is wrong"})
    found.close()
