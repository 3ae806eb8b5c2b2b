"""Commands, arguments and options, from the program itself."""

from collections.abc import Iterator
from typing import Any, Final

import typer.main

from balanced_source_operator.cli import app
from support.reference.markdown import head, table

TEXT: Final = """All commands of `balanced-source`. The same program is the kubectl plug-in `kubectl
bsrc`. [Command line](../command-line.md) explains them with examples.
"""


def page() -> str:
    """Return the page."""
    parts = [head("Commands", "operator/src/balanced_source_operator/cli", TEXT)]
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        text = " ".join((command.help or "").split())
        parts.append(f"\n## {name}\n\n{text}\n")
        if rows := list(_rows(command)):
            parts.append("\n" + table(("parameter", "default", "meaning"), rows))
    return "".join(parts)


def _rows(command: Any) -> Iterator[tuple[str, str, str]]:
    for parameter in command.params:
        is_option = parameter.param_type_name == "option"
        names = (
            ", ".join(f"`{name}`" for name in parameter.opts)
            if is_option
            else f"`{parameter.name.upper()}`"
        )
        default = "required" if parameter.required else _default(parameter.default)
        yield names, default, getattr(parameter, "help", "") or ""


def _default(value: Any) -> str:
    if value in (None, "", False):
        return ""
    return f"`{getattr(value, 'value', value)}`"
