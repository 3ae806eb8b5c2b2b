"""The index of scenarios is complete, honest and up to date."""

from pathlib import Path

import pytest

from support.scenario_index import Found, collect, page

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_is_up_to_date() -> None:
    """Every row is there, and none that names a test that is not.

    A merge may leave rows without a test behind.
    """
    there = set((DOCS / "scenarios.md").read_text(encoding="utf-8").splitlines())
    expected = set(page(collect()).splitlines())

    assert not expected - there, "stale: run `make generate`"
    assert not {row for row in there - expected if not row.endswith("| — |")}, (
        "stale: run `make generate`"
    )


def test_a_scenario_without_a_test_is_listed_as_such() -> None:
    assert "| C1 | growth fills up, a refresh changes the count | — |" in page([])


def test_a_test_names_its_file_and_what_it_asserts() -> None:
    found = Found(scenario="C1", test="unit/test_a.py::test_b", asserts="It works.")

    assert "| `unit/test_a.py::test_b`: It works. |" in page([found])


def test_an_unknown_id_is_refused() -> None:
    with pytest.raises(ValueError, match=r"C99 \(unit/test_a.py::test_b\)"):
        page([Found(scenario="C99", test="unit/test_a.py::test_b", asserts="It works.")])


def test_a_marked_test_needs_a_docstring(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text("@pytest.mark.scenario('C1')\ndef test_it():\n    pass\n")

    with pytest.raises(ValueError, match="test_it needs a docstring"):
        collect(tmp_path)


def test_ids_of_single_parameters_are_found(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(
        "@pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.scenario('C1'))])\n"
        "def test_it(n):\n    '''It works.'''\n"
    )

    assert collect(tmp_path) == [
        Found(scenario="C1", test="test_x.py::test_it", asserts="It works.")
    ]
