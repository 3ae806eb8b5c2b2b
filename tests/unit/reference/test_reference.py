"""The generated pages are current, and leave nothing out."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from balanced_source_operator.cli.markdown import rows_of
from balanced_source_operator.spec.crd import custom_resource_definition
from support.reference import PAGES, chart_values
from support.reference.options import options
from testbed.versions import CHECKOUT

DOCS = CHECKOUT / "docs"
SPARK = CHECKOUT / "spark_app" / "src" / "balanced_source_spark"
KAFKA = SPARK / "kafka"
READ_BY = (
    SPARK / "options.py",
    SPARK / "journal_options.py",
    KAFKA / "options.py",
    KAFKA / "offset_options.py",
    KAFKA / "client_options.py",
    SPARK / "files" / "options.py",
    SPARK / "files" / "store_options.py",
    SPARK / "kinesis" / "options.py",
    SPARK / "hybrid" / "options.py",
    SPARK / "contract" / "half.py",
)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_current(name: str) -> None:
    assert (DOCS / "reference" / name).read_text(encoding="utf-8") == PAGES[name](), (
        "run: make generate"
    )


def test_every_field_has_a_meaning() -> None:
    schema = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"][
        "properties"
    ]
    rows = [row for part in ("spec", "status") for row in rows_of(schema[part], part)]

    assert len(rows) > 150
    assert [path for path, _, _, meaning in rows if not meaning] == []


def test_every_value_of_the_chart_has_a_meaning() -> None:
    values = chart_values.values()

    assert len(values) > 100
    assert [path for path, _, _, meaning in values if not meaning] == []


def test_the_readme_of_the_chart_has_its_values_and_links_to_pages() -> None:
    text = chart_values.readme()
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}

    assert list(rows) == [path for path, _, _, _ in chart_values.values()]
    assert "| `[53, 5353]` |" in rows["networkPolicy.dnsPorts"]
    assert "(../../docs/how-to/status-page.md)" in rows["page.enabled"]
    assert (chart_values.CHART / "../../docs/how-to/status-page.md").is_file()


def test_the_options_are_those_that_the_code_reads() -> None:
    named = {o.name.lower() for group in options().values() for o in group if not o.instead}

    read = {name.lower() for file in READ_BY for name in _read_names(file)}
    assert named - {"kafka.*", "kafka.bootstrap.servers"} == read


def _read_names(file: Path) -> Iterator[str]:
    """Names of options in code such as ``options.get("x")`` and ``"x" in options``."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name("options"), attr="get"), args=[name, *_]
            ):
                yield from _texts(name)
            case ast.Call(args=[ast.Name("options"), name, *_]):
                yield from _texts(name)
            case ast.Subscript(value=ast.Name("options"), slice=name):
                yield from _texts(name)
            case ast.Compare(
                left=name, ops=[ast.In() | ast.NotIn()], comparators=[ast.Name("options")]
            ):
                yield from _texts(name)
            case ast.comprehension(iter=ast.Tuple(elts=names)):  # ("subscribe", …)
                yield from (text for name in names for text in _texts(name))
            case _:
                pass


def _texts(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(str(text)) if text.isidentifier() and text not in ("starting", "ending"):
            yield text
        case ast.JoinedStr(values=[ast.FormattedValue(), ast.Constant(str(rest))]):
            yield from (f"{which}{rest}" for which in ("starting", "ending"))
        case _:
            pass
