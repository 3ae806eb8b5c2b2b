"""Tables with the same splits share their layout."""

from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source.documents import columns
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.assignment import to_json as assignment_to_json
from balanced_source.documents.report import HostReport
from balanced_source.documents.report import to_json as report_to_json

FILES: list[SplitId] = [("files", f"/in/{number}", 0) for number in (3, 1, 2)]
FEW = FILES[:1]


class Layouts:
    """Counts the layouts that are worked out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.of: list[list[SplitId]] = []
        make = columns.TableLayout.__init__

        def counted(layout: columns.TableLayout, split_ids: list[SplitId]) -> None:
            self.of.append(split_ids)
            make(layout, split_ids)

        monkeypatch.setattr(columns.TableLayout, "__init__", counted)


def test_it_writes_what_a_map_alone_would() -> None:
    encode_map = columns.TableEncoder()
    tables: list[dict[SplitId, Any]] = [
        dict(zip(FILES, values, strict=True)) for values in ((1, 2, 3), ({"a": 1}, {"a": 1}, {}))
    ]

    for table in [{}, *tables, dict.fromkeys(FEW, 7), *reversed(tables)]:
        assert encode_map(table) == columns.encode_map(table)


def test_a_table_of_a_few_splits_does_not_replace_the_layout_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layouts, encode_map = Layouts(monkeypatch), columns.TableEncoder()

    for split_ids in (FILES, FEW, FILES):
        encode_map(dict.fromkeys(split_ids, 0))

    assert layouts.of.count(FILES) == 1


def test_documents_work_out_the_layout_of_their_splits_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layouts, owners = Layouts(monkeypatch), dict.fromkeys(FILES, 0)

    assignment_to_json(
        Assignment(epoch=1, parallelism=1, owners=owners, starts=owners, since=owners)
    )
    assert layouts.of.count(FILES) == 1

    report_to_json(HostReport(incarnation=1, owners=owners, positions=owners))
    assert layouts.of.count(FILES) == 2
