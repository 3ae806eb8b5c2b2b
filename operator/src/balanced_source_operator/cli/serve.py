"""``operator`` and ``crd``: commands for those who run the operator."""

import os
from typing import Annotated

import typer

from balanced_source_operator.cli.errors import in_sentences


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (operator, crd):
        app.command()(in_sentences(command))


def operator(debug: Annotated[bool, typer.Option(help="Log debug messages.")] = False) -> None:
    """Run the operator. Its settings are BALANCED_SOURCE_… in the environment."""
    from balanced_source_operator.logs import configure_logging
    from balanced_source_operator.process import run
    from balanced_source_operator.settings import settings_from

    configure_logging(is_debug=debug)
    run(settings_from(os.environ))


def crd(
    connectors: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="CONNECTOR",
            help="Installed connector that gets its own field in spec.source. Repeatable.",
        ),
    ] = None,
) -> None:
    """Print the CustomResourceDefinition.

    Installed connectors do not change it, except those named by --with.
    """
    from balanced_source_operator.spec.crd import custom_resource_definition, to_yaml

    typer.echo(to_yaml(custom_resource_definition(connectors or ())), nl=False)
