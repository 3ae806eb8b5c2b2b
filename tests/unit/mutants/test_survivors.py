"""The list of survivors is readable, and says nothing about lines that are gone."""

import importlib.util
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from mutants.report import KNOWN

SURVIVORS: Final[dict[str, str]] = tomllib.loads(KNOWN.read_text())["survivors"]


@cache
def lines_of(module: str) -> frozenset[str]:
    """Return the lines of a module, without their indentation."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return frozenset(map(str.strip, Path(spec.origin).read_text().splitlines()))


@pytest.mark.parametrize("name", SURVIVORS)
def test_a_survivor_names_a_line_that_exists(name: str) -> None:
    """Delete an entry once its line has changed."""
    place, _, line = name.split(": ", 2)

    module, _, function = place.partition(":")
    assert function
    assert re.sub(r" \(\d+\)$", "", line) in lines_of(module)


@pytest.mark.parametrize("name", SURVIVORS)
def test_each_survivor_has_a_reason(name: str) -> None:
    assert re.fullmatch(r"[A-Z].{15,}\.", SURVIVORS[name])
