"""The entry point: version, what is missing, and no traceback whatever happens."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from balanced_source_adapters.version import installed_version
from balanced_source_operator import cli, command
from balanced_source_operator.cli import main as module
from testbed.versions import CHECKOUT

COMMANDS = (
    "status",
    "top",
    "plan",
    "rebalance",
    "validate",
    "crd",
    "reference",
    "local",
    "operator",
)


def test_version() -> None:
    printed = CliRunner().invoke(cli.app, ["--version"]).stdout
    assert printed == f"balanced-source {installed_version()}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    result = CliRunner().invoke(cli.app, [name, "--help"])

    assert result.exit_code == 0
    assert f" {name} " in result.stdout


def test_options_are_described_in_words_of_users() -> None:
    """Not by types of Python; what stands for a value is in capitals."""
    types = re.compile(r"<(list|int|float|path|str|file)\b[^>]*>")
    group = typer.main.get_command(cli.app)
    found = {
        f"{name} {option.name}"
        for name, made in group.commands.items()  # type: ignore[attr-defined]
        for option in made.params
        if option.param_type_name == "option" and types.search(option.display_type_rich(None) or "")
    }

    assert found == set()


def test_every_command_is_in_the_documentation() -> None:
    group = typer.main.get_command(cli.app)
    page = (CHECKOUT / "docs" / "command-line.md").read_text()

    assert [name for name in group.commands if f"| `{name}" not in page] == []  # type: ignore[attr-defined]


def test_without_its_extra_the_command_says_what_to_install() -> None:
    """The entry point itself imports nothing but Python.

    Shown in a process that has nothing else.
    """
    source = Path(command.__file__).parents[1]
    program = (
        f"import sys; sys.path.insert(0, {str(source)!r}); from balanced_source_operator.command"
        " import main; main()"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "the Python package 'typer' is not installed" in done.stderr
    assert "Run: pip install 'balanced-source[operator]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broken_installation_is_not_called_a_missing_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_: str) -> Any:
        raise ModuleNotFoundError("gone", name="balanced_source_operator.cli")

    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(ModuleNotFoundError):
        command.main()


def run_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> Any:
    def fail(**_: str) -> None:
        raise error

    monkeypatch.setattr(module, "app", fail)
    with pytest.raises(SystemExit) as ended:
        module.run()
    return ended.value.code


def test_a_defect_is_a_sentence_and_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_with(monkeypatch, ZeroDivisionError("what now")) == 70

    said = capsys.readouterr().err
    assert said.startswith(
        "Error: a defect of balanced-source: ZeroDivisionError: what now. Please report it with"
    )
    file = Path(said.split()[-1])
    assert "Traceback" in file.read_text()
    file.unlink()


def test_an_interruption_is_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_with(monkeypatch, KeyboardInterrupt()) == 130
