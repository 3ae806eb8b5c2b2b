"""The heat map: splits × readers, sums per reader when there are many splits, unknown never 0."""

import pytest

from balanced_source.documents.lags import MOST_SPLITS, Lags
from balanced_source_operator.page.heat import LEVELS, bounds, heat_map, level, to_json
from balanced_source_operator.views.model import Adopted, SourceView

A, B, C = ("main", "orders", 2), ("main", "orders", 10), ("main", "bills", 0)
VIEW = SourceView(
    namespace="shop", name="orders", epoch=4, parallelism=3, owners={A: 0, B: 0, C: 1}, pending=2,
    adopted=Adopted(epoch=4, parallelism=3, owners={A: 0, B: 0, C: 1}),
)  # fmt: skip
MANY = SourceView(
    namespace="shop",
    name="orders",
    epoch=4,
    parallelism=2,
    owners={("main", "orders", number): number % 2 for number in range(MOST_SPLITS + 1)},
)


def test_each_reader_has_a_row_with_a_cell_per_split_in_order() -> None:
    found = heat_map(VIEW, Lags(splits={A: 5, B: None}), {A: 1.5})

    assert [(row.reader, row.splits) for row in found.rows] == [(0, 2), (1, 1), (2, 0)]
    assert [(cell.split, cell.lag, cell.rate) for row in found.rows for cell in row.cells] == [
        (A, 5, 1.5),
        (B, None, None),
        (C, None, None),
    ]
    assert (found.is_per_split, found.pending) == (True, 2)


def test_a_split_that_is_on_its_way_names_the_reader_that_still_reads_it() -> None:
    former = Adopted(epoch=3, parallelism=1, owners={A: 1, B: 0})
    view = SourceView(
        namespace="", name="o", epoch=4, parallelism=2, owners=VIEW.owners, adopted=former
    )

    shown = to_json(heat_map(view, Lags(), {}))

    moving = {c["split"]: c.get("movesFrom") for row in shown["rows"] for c in row["cells"]}
    assert moving == {"main/orders/2": 1, "main/orders/10": None, "main/bills/0": None}


def test_many_splits_are_summed_up_per_reader() -> None:
    rates = dict.fromkeys((split for split, owner in MANY.owners.items() if owner == 0), 2.0)

    found = heat_map(MANY, Lags(readers={1: 9}), rates)

    assert not found.is_per_split
    assert [(row.splits, row.cells[0].lag, row.cells[0].rate) for row in found.rows] == [
        (1001, None, 2002.0),
        (1000, 9, None),
    ]


def test_the_most_splits_still_have_a_cell_each() -> None:
    view = SourceView(
        namespace="",
        name="o",
        parallelism=1,
        owners={("c", "t", number): 0 for number in range(MOST_SPLITS)},
    )

    assert len(heat_map(view, Lags(), {}).rows[0].cells) == MOST_SPLITS


@pytest.mark.parametrize(
    ("value", "top", "expected"),
    [
        (None, 10, None),
        (0, 10, 0),
        (0, 0, 0),
        (1, 1, LEVELS),
        (10, 10, LEVELS),
        (11, 10, LEVELS),
        (0.001, 1e9, 1),
    ],
)
def test_levels(value: float | None, top: float, expected: int | None) -> None:
    assert level(value, top) == expected


def test_the_legend_says_what_the_colours_mean() -> None:
    for top in (1, 7, 1234567):
        assert [level(bound, top) for bound in bounds(top)] == list(range(1, LEVELS + 1))
        assert bounds(top)[-1] == pytest.approx(top)
    assert bounds(0) == []


def test_the_colours_are_decided_for_the_page() -> None:
    shown = to_json(heat_map(VIEW, Lags(splits={A: 100, B: 0}), {A: 2.0}))

    assert [cell["levels"] for row in shown["rows"] for cell in row["cells"]] == [
        {"lag": 6, "rate": 6},
        {"lag": 0, "rate": None},
        {"lag": None, "rate": None},
    ]
    assert shown["bounds"]["lag"][-1] == pytest.approx(100)
