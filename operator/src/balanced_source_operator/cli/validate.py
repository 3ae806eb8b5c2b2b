"""``validate``: checks manifests before they reach a cluster, or with the help of one."""

import enum
import json
from dataclasses import asdict
from typing import Annotated

import typer

from balanced_source_operator.cli.errors import INVALID, in_sentences
from balanced_source_operator.cli.options import (
    ContextOption,
    NamespaceOption,
    Output,
    OutputOption,
)
from balanced_source_operator.cli.server_check import ServerMode, check_with_server
from balanced_source_operator.validation.manifests import Report, check_files


class _Verdict(enum.StrEnum):
    VALID = "valid"
    INVALID = "invalid"


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(in_sentences(validate))


def validate(
    files: Annotated[
        list[str],
        typer.Option(
            "-f", "--file", metavar="FILE", help="File or folder; - is the standard input."
        ),
    ],
    server: Annotated[
        ServerMode,
        typer.Option(
            metavar="auto|always|never",
            help=(
                "Also check on the API server, by a dry run that stores nothing. auto: if one can"
                " be reached."
            ),
        ),
    ] = ServerMode.AUTO,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Check BalancedSource manifests: fields, CEL rules and everything the operator checks.

    Exit code: 0 if all are valid, 1 if not, 2 if a file cannot be read or the API server that was
    asked for cannot be reached.
    """
    report = check_with_server(check_files(files), server, namespace=namespace, context=context)
    typer.echo(as_json(report) if output is Output.JSON else as_text(report), nl=False)
    for note in report.notes:
        typer.echo(f"note: {note}", err=True)
    if report.problems:
        raise typer.Exit(INVALID)


def as_json(report: Report) -> str:
    """Return the report for programs."""
    content = {
        "valid": not report.problems,
        "checked": [asdict(checked.name) for checked in report.checked],
        "problems": [asdict(problem) for problem in report.problems],
        "notes": list(report.notes),
    }
    return json.dumps(content, indent=2) + "\n"


def as_text(report: Report) -> str:
    """Return one line per problem, as compilers write them, then one line per source."""
    lines = [str(problem) for problem in report.problems]
    bad = {(problem.file, problem.document) for problem in report.problems}
    for checked in report.checked:
        name = checked.name
        state = _Verdict.INVALID if (name.file, name.document) in bad else _Verdict.VALID
        lines.append(f"{name.file}: BalancedSource {name.name}: {state}")
    return "\n".join(lines) + "\n"
