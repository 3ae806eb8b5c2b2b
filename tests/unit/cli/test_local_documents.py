"""Local mode starts beside documents that somebody has edited or torn."""

from pathlib import Path

import pytest
import yaml

from balanced_source.documents import assignment as assignment_document
from balanced_source.documents.assignment import Assignment
from balanced_source_adapters.folder import assignment_path, report_path
from balanced_source_operator.local import HOST, UID, LocalOperator
from support.builders import spec_json

pytestmark = pytest.mark.unit


def operator(folder: Path) -> LocalOperator:
    file = folder / "source.yaml"
    file.write_text(yaml.safe_dump({"spec": spec_json()}))
    return LocalOperator(file, folder)


@pytest.mark.parametrize("name", ["assignment", "report"])
def test_a_damaged_document_of_no_state_keeps_nothing_from_starting(tmp_path: Path, name: str) -> None:
    """Both are written anew; only a damaged state needs somebody to decide."""
    path = assignment_path(tmp_path) if name == "assignment" else report_path(tmp_path, HOST)
    path.write_text('{"kind": "Assignment"}')

    made = operator(tmp_path)

    assert made.coordinator.state.lineage == 1


def test_a_lineage_that_can_be_read_still_counts(tmp_path: Path) -> None:
    assignment = Assignment(lineage=4, epoch=9, parallelism=1)
    assignment_path(tmp_path).write_text(assignment_document.encode(assignment, source=UID))
    report_path(tmp_path, HOST).write_text("{")

    assert operator(tmp_path).coordinator.state.lineage == 5
