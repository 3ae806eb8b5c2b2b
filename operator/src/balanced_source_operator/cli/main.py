"""All commands, and the way every error becomes a sentence."""

import os
import sys
from typing import Annotated

import typer

from balanced_source_adapters.version import installed_version
from balanced_source_operator.cli import (
    diagnose,
    inspect,
    local,
    reference,
    report,
    schema,
    serve,
    validate,
)
from balanced_source_operator.cli.errors import INTERNAL, report_of

app = typer.Typer(
    help="Streaming sources on Spark that stay evenly spread over their readers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for group in (validate, schema, inspect, diagnose, report, local, serve, reference):
    group.add_to(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"balanced-source {installed_version()}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


def run() -> None:
    """Run the command line and exit."""
    name = os.path.basename(sys.argv[0])  # noqa: PTH119 - a name, not a path
    try:
        app(prog_name="kubectl bsrc" if name.startswith("kubectl") else "balanced-source")
    except BrokenPipeError:  # the reader of the output has what it wanted, as in `… | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # noqa: BLE001 - whatever it was, the user gets a sentence
        typer.echo(report_of(error), err=True)
        sys.exit(INTERNAL)
