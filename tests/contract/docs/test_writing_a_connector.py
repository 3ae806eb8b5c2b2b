"""Executes the page.

Its blocks run in their order in one module, and its test classes are collected here.

The last block needs Spark: `tests/integration/connector` runs it, with the blocks before it in a
wheel.
"""

import re
import shutil
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from balanced_source.api import DriverOnly
from balanced_source_adapters.connectors import Connectors, Registration
from balanced_source_spark.contract.half import half_of
from testbed.versions import CHECKOUT

PAGE = CHECKOUT / "docs" / "writing-a-connector.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

PROGRAM = "SparkSession"


def _execute() -> types.ModuleType:
    text = PAGE.read_text()
    module = types.ModuleType("writing_a_connector")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    for found in BLOCK.finditer(text):
        if PROGRAM in found.group(1):
            continue
        line = text.count("\n", 0, found.start(1))
        code = compile("\n" * line + found.group(1), str(PAGE), "exec")
        exec(code, module.__dict__)  # noqa: S102 - that is the test
    return module


_page = _execute()

TestLinesSplitReader = _page.TestLinesSplitReader
TestLinesReader = _page.TestLinesReader
TestLinesEnumerator = _page.TestLinesEnumerator
TestLinesSerializer = _page.TestLinesSerializer


@pytest.fixture(scope="module", autouse=True)
def _clean_up() -> Iterator[None]:
    yield
    shutil.rmtree(_page.folder)


def test_every_block_of_the_page_was_executed() -> None:
    assert len(BLOCK.findall(PAGE.read_text())) == PAGE.read_text().count("```python") >= 8
    assert len(_page.seen) == 1500


def test_a_range_can_be_cut_anywhere() -> None:
    path = next(Path(_page.folder).glob("*.txt"))
    size = path.stat().st_size

    for cut in range(0, size, 7):
        halves = [*_page.lines_between(path, 0, cut), *_page.lines_between(path, cut, size)]
        assert halves == path.read_text().splitlines()


def test_its_connector_can_be_registered() -> None:
    found = _registered().load()

    assert found.identity_of(_page.ListFiles(scope="f", round=1)) == DriverOnly()
    assert isinstance(half_of("lines", Connectors([_registered()])), _page.LinesSparkHalf)


def _registered() -> Registration:
    return Registration(
        kind="lines", reference="writing_a_connector:LinesConnector", package="page"
    )


def test_a_folder_that_is_missing_is_named() -> None:
    with pytest.raises(_page.RefusedDiscoveryError, match="nowhere is no folder: create it"):
        _page.Files().execute(_page.ListFiles(scope="nowhere", round=1))
