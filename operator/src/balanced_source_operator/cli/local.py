"""``local``: serves a source without Kubernetes."""

from pathlib import Path
from typing import Annotated

import typer

from balanced_source_operator.cli.errors import in_sentences


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(in_sentences(local))


def local(
    file: Annotated[Path, typer.Option("-f", "--file", help="A BalancedSource; edit it while this runs.")],
    folder: Annotated[Path, typer.Option("--dir", help="Folder for the documents.")],
) -> None:
    """Serve one source without Kubernetes. Start the query yourself, with option assignmentDir."""
    from balanced_source_operator.local import LocalOperator
    from balanced_source_operator.logs import configure_logging

    configure_logging()
    LocalOperator(file, folder).run()
