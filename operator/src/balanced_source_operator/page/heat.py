"""The heat map of a source: splits × readers, coloured by lag or by rate. Pure.

A row per reader with a cell per split that it owns. A source with many splits has one cell per
reader.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from balanced_source.api import SplitId
from balanced_source.documents.lags import MOST_SPLITS, Lags
from balanced_source.names import split_name
from balanced_source_operator.views.model import SourceView, in_order

LEVELS: Final = 6
"""Colours for values above 0; level 0 is the value 0, and None is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A split, or all splits of a reader.

    Attributes:
        split: None in a map of readers.
        lag: records not yet read; None is unknown.
        rate: positions per second; None is unknown.
        moves_from: reader that still reads the split, until the application adopts the newest
            epoch.
    """

    split: SplitId | None
    lag: int | None
    rate: float | None
    moves_from: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatRow:
    """A reader: how many splits it owns, and its cells."""

    reader: int
    splits: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """See the module.

    Attributes:
        is_per_split: whether each cell is a split.
        rows: by reader.
        pending: splits without a reader; None is unknown.
    """

    is_per_split: bool
    rows: tuple[HeatRow, ...]
    pending: int | None


def heat_map(view: SourceView, lags: Lags, rates: Mapping[SplitId, float]) -> HeatMap:
    """Return the map of a source. At most `MOST_SPLITS` cells, or one per reader."""
    owned: dict[int, list[SplitId]] = {reader: [] for reader in range(view.parallelism)}
    for split, reader in view.owners.items():
        owned.setdefault(reader, []).append(split)
    is_per_split = len(view.owners) <= MOST_SPLITS
    former = _former(view) if is_per_split else {}
    return HeatMap(
        is_per_split=is_per_split,
        rows=tuple(
            HeatRow(
                reader=reader,
                splits=len(splits),
                cells=tuple(
                    _cells(splits, lags, rates, former)
                    if is_per_split
                    else [_sum(reader, splits, lags, rates)]
                ),
            )
            for reader, splits in sorted(owned.items())
        ),
        pending=view.pending,
    )


def _former(view: SourceView) -> Mapping[SplitId, int]:
    """Return the readers that the application's epoch says, if that is not the newest one."""
    return (
        view.adopted.owners if view.adopted is not None and view.adopted.epoch < view.epoch else {}
    )


def _cells(
    splits: list[SplitId], lags: Lags, rates: Mapping[SplitId, float], former: Mapping[SplitId, int]
) -> Iterable[Cell]:
    for split in in_order(splits):
        yield Cell(
            split=split,
            lag=lags.splits.get(split),
            rate=rates.get(split),
            moves_from=former.get(split),
        )


def _sum(reader: int, splits: list[SplitId], lags: Lags, rates: Mapping[SplitId, float]) -> Cell:
    """Return the cell of a reader; a sum is unknown while a part of it is."""
    known = [rates[split] for split in splits if split in rates]
    return Cell(
        split=None,
        lag=lags.readers.get(reader),
        rate=sum(known) if len(known) == len(splits) else None,
    )


def level(value: float | None, top: float) -> int | None:
    """Return the colour of a value, on a logarithmic scale up to `top`; None if it is unknown."""
    if value is None:
        return None
    if value <= 0 or top <= 0:
        return 0
    share = math.log1p(min(value, top)) / math.log1p(top)
    return max(1, math.ceil(share * LEVELS - 1e-9))


def bounds(top: float) -> list[float]:
    """Return the largest value of each level above 0; empty if all are 0."""
    return (
        [math.expm1(math.log1p(top) * step / LEVELS) for step in range(1, LEVELS + 1)]
        if top > 0
        else []
    )


def to_json(found: HeatMap) -> dict[str, Any]:
    """Return the map for the page: colours are decided here, so that the page only draws."""
    cells = [cell for row in found.rows for cell in row.cells]
    tops = {
        "lag": max((cell.lag for cell in cells if cell.lag is not None), default=0),
        "rate": max((cell.rate for cell in cells if cell.rate is not None), default=0),
    }
    return {
        "perSplit": found.is_per_split,
        "mostSplits": MOST_SPLITS,
        "pending": found.pending,
        "bounds": {measure: bounds(top) for measure, top in tops.items()},
        "rows": [
            {
                "reader": row.reader,
                "splits": row.splits,
                "cells": [_cell(cell, tops, row.reader) for cell in row.cells],
            }
            for row in found.rows
        ],
    }


def _cell(cell: Cell, tops: Mapping[str, float], reader: int) -> dict[str, Any]:
    moves = cell.moves_from is not None and cell.moves_from != reader
    return {
        "split": None if cell.split is None else split_name(cell.split),
        "lag": cell.lag,
        "rate": cell.rate,
        "levels": {"lag": level(cell.lag, tops["lag"]), "rate": level(cell.rate, tops["rate"])},
        **({"movesFrom": cell.moves_from} if moves else {}),
    }
