"""Executes the files of the page that need no Spark, and collects the test classes of one.

The program that needs Spark runs in `tests/integration/connector`, with the connector in a wheel.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from balanced_source.api import DriverOnly, RebalancePolicy
from balanced_source.assigners import RoundRobinAssigner
from balanced_source.errors import InvalidSpecError
from balanced_source_adapters.connectors import Connectors, load
from balanced_source_adapters.registrations import Registration
from balanced_source_operator.contract.half import Common
from balanced_source_operator.contract.half import half_of as operator_half_of
from balanced_source_spark.contract.half import half_of
from balanced_source_spark.contract.option_table import check_options
from support.connector_page import PAGE, blocks, execute, files, text, unused

FILES = files()


_page = execute("lines_connector.py")
_operator = execute("lines_operator.py")
_trial = execute("try_it.py")
_tests = execute("test_lines.py")

TestLinesSplitReader = _tests.TestLinesSplitReader
TestLinesReader = _tests.TestLinesReader
TestLinesEnumerator = _tests.TestLinesEnumerator
TestLinesSerializer = _tests.TestLinesSerializer


@pytest.fixture(scope="module", autouse=True)
def _clean_up() -> Iterator[None]:
    yield
    for module in (_trial, _tests):
        shutil.rmtree(module.folder)


def test_every_block_of_the_page_belongs_to_a_file() -> None:
    assert unused() == []
    assert sorted(FILES) == [
        "lines_connector.py",
        "lines_operator.py",
        "pyproject.toml",
        "read_lines.py",
        "test_lines.py",
        "try_it.py",
    ]
    assert len(_trial.seen) == 1500


def test_the_project_of_the_page_ends_with_a_query_of_spark() -> None:
    """What follows is for later: it has no code."""
    last = blocks()[-1]

    assert last.language == "python"
    assert "spark.readStream" in last.code
    rest = PAGE.read_text(encoding="utf-8").partition(f"{last.code}\n```")[2]
    assert rest.startswith("\n\n## Beyond this page\n")
    assert "```" not in rest


def test_every_block_says_its_language() -> None:
    """`tests/integration/connector/test_page.py` does with each what a reader does."""
    assert {block.language for block in blocks()} == {"python", "toml", "sh", "dockerfile", "yaml"}
    assert not re.search(r"\n\n {4}\S", text()), "an indented block, which no test runs"


def test_a_range_can_be_cut_anywhere() -> None:
    path = next(Path(_trial.folder).glob("*.txt"))
    size = path.stat().st_size

    for cut in range(0, size, 7):
        halves = [*_page.lines_between(path, 0, cut), *_page.lines_between(path, cut, size)]
        assert halves == path.read_text().splitlines()


def test_its_connector_can_be_registered() -> None:
    found = load(_registered())

    assert found.identity_of(_page.ListFiles(scope="f", round=1)) == DriverOnly()
    assert isinstance(half_of("lines", Connectors([_registered()])), _page.LinesSparkHalf)


def _registered() -> Registration:
    return Registration(kind="lines", reference="lines_connector:LinesConnector", package="page")


def test_a_manifest_becomes_its_source() -> None:
    half = operator_half_of("lines", Connectors([_registered()]))
    common = Common(assigner=RoundRobinAssigner(), rebalance_policy=RebalancePolicy())
    spec = half.spec.model_validate({"folders": ["a", "b"]})

    assert isinstance(half, _operator.LinesOperatorHalf)
    assert half.to_source(spec, common, {}, field="f") == _page.LinesSource(folders=("a", "b"))


def test_a_folder_that_is_missing_is_named() -> None:
    with pytest.raises(
        _page.RefusedDiscoveryError, match="folder nowhere does not exist: create it"
    ):
        _page.Files().execute(_page.ListFiles(scope="nowhere", round=1))


def test_a_query_without_its_required_option_names_it() -> None:
    with pytest.raises(InvalidSpecError, match=r"option folders: must be set\. Folders"):
        check_options({}, _page.LinesSparkHalf().options(), is_embedded=True)
