"""Executes the page: its blocks run in their order in one module, and its test classes are collected here."""

import re
import shutil
import sys
import types
from collections.abc import Iterator

import pytest

from testbed.versions import CHECKOUT

PAGE = CHECKOUT / "docs" / "writing-a-connector.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _execute() -> types.ModuleType:
    text = PAGE.read_text()
    module = types.ModuleType("writing_a_connector")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    for found in BLOCK.finditer(text):
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


def test_a_folder_that_is_missing_is_named() -> None:
    with pytest.raises(_page.RefusedDiscoveryError, match="nowhere is no folder: create it"):
        _page.Files().execute(_page.ListFiles(scope="nowhere", round=1))
