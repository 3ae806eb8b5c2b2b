"""Local mode starts beside documents that someone has edited or torn."""

from pathlib import Path

import pytest
import yaml

from balanced_source.coordinator import state_codec
from balanced_source.documents import assignment as assignment_document
from balanced_source.documents.assignment import Assignment
from balanced_source.errors import InvalidSpecError
from balanced_source_adapters.folder import assignment_path, fixed_path, report_path, state_path
from balanced_source_operator.local import HOST, UID, LocalOperator
from support.builders import spec_json

pytestmark = pytest.mark.unit


def operator(folder: Path) -> LocalOperator:
    file = folder / "source.yaml"
    file.write_text(yaml.safe_dump({"spec": spec_json()}))
    return LocalOperator(file, folder)


@pytest.mark.parametrize("name", ["assignment", "report"])
def test_a_damaged_document_of_no_state_keeps_nothing_from_starting(
    tmp_path: Path, name: str
) -> None:
    """Both are written again; only a damaged state needs someone to decide."""
    path = assignment_path(tmp_path) if name == "assignment" else report_path(tmp_path, HOST)
    path.write_text('{"kind": "Assignment"}')

    made = operator(tmp_path)

    assert made.coordinator.state.lineage == 1


def test_a_lineage_that_can_be_read_still_counts(tmp_path: Path) -> None:
    assignment = Assignment(lineage=4, epoch=9, parallelism=1)
    assignment_path(tmp_path).write_text(assignment_document.encode(assignment, source=UID))
    report_path(tmp_path, HOST).write_text("{")

    assert operator(tmp_path).coordinator.state.lineage == 5


def bounded(folder: Path, millis: int) -> LocalOperator:
    """Local mode on a source that reads up to a time."""
    kafka = {
        **spec_json()["source"]["kafka"],
        "stoppingOffsets": {"type": "Timestamp", "timestamp": millis},
    }
    file = folder / "source.yaml"
    file.write_text(yaml.safe_dump({"spec": spec_json(source={"kafka": kafka})}))
    return LocalOperator(file, folder)


def keep_state(made: LocalOperator, folder: Path) -> None:
    """Store what the operator knows, as its loop does at each change."""
    source = made.coordinator.source
    state = state_codec.encode(made.coordinator.checkpoint(), source, uid=UID)
    state_path(folder).write_text(state)


def test_ends_that_changed_while_local_mode_was_down_are_rejected(tmp_path: Path) -> None:
    keep_state(bounded(tmp_path, 1_000), tmp_path)

    with pytest.raises(InvalidSpecError, match="stoppingOffsets: was changed while"):
        bounded(tmp_path, 2_000)

    assert bounded(tmp_path, 1_000).problems == ()


def test_a_folder_without_state_begins_with_any_ends(tmp_path: Path) -> None:
    keep_state(bounded(tmp_path, 1_000), tmp_path)
    state_path(tmp_path).unlink()

    assert bounded(tmp_path, 2_000).problems == ()


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"stoppingOffsets": 7}'])
def test_a_damaged_note_of_the_ends_is_written_again(tmp_path: Path, text: str) -> None:
    keep_state(operator(tmp_path), tmp_path)
    before = fixed_path(tmp_path).read_text()
    fixed_path(tmp_path).write_text(text)

    if "stoppingOffsets" in text:
        with pytest.raises(InvalidSpecError):
            operator(tmp_path)
    else:
        operator(tmp_path)
        assert fixed_path(tmp_path).read_text() == before
