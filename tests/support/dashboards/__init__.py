"""Grafana dashboards of the chart: ``python -m support.dashboards`` writes them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from support.dashboards import fleet, source
from testbed.versions import CHECKOUT

FOLDER: Final[Path] = CHECKOUT / "charts" / "balanced-source" / "files" / "dashboards"

DASHBOARDS: Final[Mapping[str, Callable[[], str]]] = {
    "fleet.json": fleet.dashboard,
    "source.json": source.dashboard,
}
"""File in `FOLDER` → its content."""
