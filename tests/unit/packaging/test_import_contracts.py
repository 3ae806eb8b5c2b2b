"""Each connector is walled off: a new one cannot be forgotten in the import contracts."""

import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[3]
PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
SIDES: Final = {
    "balanced_source.connectors": ROOT / "operator/src/balanced_source/connectors",
    "balanced_source_adapters": ROOT / "operator/src/balanced_source_adapters",
    "balanced_source_operator": ROOT / "operator/src/balanced_source_operator",
    "balanced_source_spark": ROOT / "spark_app/src/balanced_source_spark",
}
KINDS: Final = sorted(PROJECT["project"]["entry-points"]["balanced_source.connectors"])
SHARED: Final = {"discovery", "pull"}
"""Folders of `balanced_source.connectors` that all connectors build on."""


def packages_of(kind: str) -> set[str]:
    """Returns the packages of a connector, one for each side that it has."""
    return {f"{side}.{kind}" for side, folder in SIDES.items() if (folder / kind).is_dir()}


@pytest.mark.parametrize("kind", KINDS)
def test_the_folders_of_a_connector_are_imported_by_themselves_only(kind: str) -> None:
    packages = packages_of(kind)
    walls = [
        set(contract["allowed_importers"])
        for contract in PROJECT["tool"]["importlinter"]["contracts"]
        if packages <= set(contract.get("protected_modules", []))
    ]
    assert packages
    assert walls == [packages]


def test_each_folder_beside_the_connectors_is_one_of_them() -> None:
    folder = SIDES["balanced_source.connectors"]
    found = {path.name for path in folder.iterdir() if (path / "__init__.py").exists()}
    assert found - SHARED == set(KINDS)
