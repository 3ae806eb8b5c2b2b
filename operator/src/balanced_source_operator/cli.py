"""The command ``balanced-source``."""

import enum
import os
from pathlib import Path

import typer

from balanced_source.errors import BalancedSourceError


class Output(enum.StrEnum):
    """How results are printed."""

    TABLE = "table"
    JSON = "json"


app = typer.Typer(
    help="Streaming sources on Spark that stay evenly spread over their readers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.command()
def operator(debug: bool = typer.Option(False, help="Log more.")) -> None:
    """Run the operator. Its settings are BALANCED_SOURCE_… in the environment."""
    from balanced_source_operator.logs import configure_logging
    from balanced_source_operator.process import run
    from balanced_source_operator.settings import settings_from

    configure_logging(is_debug=debug)
    try:
        run(settings_from(os.environ))
    except BalancedSourceError as error:
        raise typer.BadParameter(str(error)) from error


@app.command()
def local(
    file: Path = typer.Option(..., "-f", "--file", help="A BalancedSource; edit it while this runs."),
    folder: Path = typer.Option(..., "--dir", help="Folder for the documents."),
) -> None:
    """Serve one source without Kubernetes; queries follow with option assignmentDir."""
    from balanced_source_operator.local import LocalOperator
    from balanced_source_operator.logs import configure_logging

    configure_logging()
    try:
        LocalOperator(file, folder).run()
    except BalancedSourceError as error:
        raise typer.BadParameter(str(error)) from error


@app.command()
def plan(
    file: Path = typer.Option(..., "-f", "--file", help="The BalancedSource as it shall be."),
    state: Path | None = typer.Option(
        None, help="Enumerator state: a ConfigMap as YAML or JSON, or local mode's file. Else the cluster is asked."
    ),
    output: Output = typer.Option(Output.TABLE, "-o", "--output", help="How to print it."),
) -> None:
    """Print what applying a changed BalancedSource would move. Nothing is changed."""
    from balanced_source_operator import dry_run

    try:
        found = dry_run.from_file(file, state) if state is not None else dry_run.from_cluster(file)
    except BalancedSourceError as error:
        raise typer.BadParameter(str(error)) from error
    typer.echo(dry_run.as_json(found) if output is Output.JSON else dry_run.as_table(found), nl=False)


@app.command()
def crd() -> None:
    """Print the CustomResourceDefinition."""
    from balanced_source_operator.spec.crd import custom_resource_definition, to_yaml

    typer.echo(to_yaml(custom_resource_definition()), nl=False)


if __name__ == "__main__":
    app()
