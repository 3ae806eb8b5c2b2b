"""What users copy from the pages is valid.

Manifests, commands, and links of files that the site does not have.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import typer.main
import yaml

from balanced_source_operator.cli import app
from balanced_source_operator.validation.manifests import check_text
from testbed.versions import CHECKOUT

PAGES = (CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md")))
EXAMPLES = tuple(sorted((CHECKOUT / "examples").glob("*.yaml")))
_BLOCK = re.compile(r"^( *)```yaml\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(
    r"^ *(?:\$ |helm template \. \| )?((?:balanced-source|kubectl bsrc) [a-z-][^#|→\n]*)",
    re.MULTILINE,
)
_QUOTED = re.compile(r"^```(?:yaml|python)\n# (examples/\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#:]+)\)")


def blocks() -> Iterator[Any]:
    for page in PAGES:
        for number, match in enumerate(_BLOCK.finditer(page.read_text(encoding="utf-8")), 1):
            if "kind: BalancedSource" in match[2]:
                yield pytest.param(dedent(match[2]), id=f"{page.stem}-{number}")


@pytest.mark.parametrize("text", list(blocks()))
def test_a_manifest_on_a_page_is_valid(text: str) -> None:
    assert check_text(text, "-").problems == ()


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_an_example_is_valid(file: Path) -> None:
    report = check_text(file.read_text(encoding="utf-8"), str(file))

    assert report.problems == ()
    assert report.checked


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_an_example_says_where_its_rows_go(file: Path) -> None:
    """Spark's default sink, a file sink without a folder, fails when the query starts."""
    found = yaml.safe_load_all(file.read_text(encoding="utf-8"))
    applications = [
        each["spec"]["application"] for each in found if each["kind"] == "BalancedSource"
    ]
    sinks = [each["pipeline"].get("sink", {}) for each in applications if "pipeline" in each]

    for sink in sinks:
        assert sink.get("format")
        assert sink["format"] == "kafka" or sink["options"]["path"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_block_that_names_an_example_is_that_example(page: Path) -> None:
    for name, text in _QUOTED.findall(page.read_text(encoding="utf-8")):
        assert text == (CHECKOUT / name).read_text(encoding="utf-8"), (
            f"{page.name} and {name} differ"
        )


def test_each_example_is_on_a_page() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    examples = (*EXAMPLES, *(CHECKOUT / "examples").glob("*.py"))

    assert [file.name for file in examples if file.name not in pages] == []


def commands() -> Iterator[Any]:
    for page in PAGES:
        if page.parent.name != "reference":
            for match in _COMMAND.finditer(_code_of(page)):
                yield pytest.param(match[1].strip(), id=f"{page.stem}: {match[1].strip()}"[:80])


def _code_of(page: Path) -> str:
    """Indented blocks, fenced blocks and words in backticks."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^ {4}.*$|^```.*?^```", text, re.MULTILINE | re.DOTALL)
    return "\n".join([*blocks, *re.findall(r"`([^`\n]+)`", text)])


@pytest.mark.parametrize("text", list(commands()))
def test_a_command_on_a_page_exists_with_its_options(text: str) -> None:
    words = shlex.split(
        text.replace("kubectl bsrc", "balanced-source").replace("[", "").replace("]", "")
    )[1:]
    group: Any = typer.main.get_command(app)
    if words[0].startswith("-"):
        return
    command = group.commands[words[0]]

    assert _complaint(command, words) in (None, "Missing")


def _complaint(command: Any, words: list[str]) -> str | None:
    try:
        command.make_context(words[0], words[1:]).close()
    except Exception as error:  # noqa: BLE001 - whatever the parser raises
        text = str(getattr(error, "message", "")) or str(error)
        return (
            "Missing"
            if "missing" in type(error).__name__.lower()
            else f"{type(error).__name__}: {text}"
        )
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_of_a_page_lead_to_files(page: Path) -> None:
    targets = _LINK.findall(page.read_text(encoding="utf-8"))

    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_pages_have_code_blocks() -> None:
    assert len(list(blocks())) >= 4
    assert len(list(commands())) >= 15


RUNBOOKS = tuple(sorted((CHECKOUT / "docs" / "runbooks").glob("BalancedSource*.md")))


@pytest.mark.parametrize("page", RUNBOOKS, ids=lambda page: page.stem)
def test_a_runbook_has_commands_and_begins_with_the_doctor(page: Path) -> None:
    blocks = re.findall(r"^ {4,}(\S.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    commands = [line for line in blocks if line.startswith(("balanced-source", "kubectl"))]

    assert commands[0].startswith("balanced-source doctor")
    assert any(line.startswith("kubectl") for line in commands)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_name_what_they_ask_for_without_doubt(page: Path) -> None:
    """Both Spark operators have SparkApplications, and the number of a driver pod grows."""
    code = _code_of(page)

    assert re.findall(r"kubectl [^\n]*\bsparkapplications?(?!\.)\b[^\n]*", code) == []
    assert re.findall(r"NAME-\d+-driver", code) == []
