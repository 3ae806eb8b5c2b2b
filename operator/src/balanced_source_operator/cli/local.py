"""``run`` and ``local``: sources without Kubernetes."""

import signal
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from balanced_source_operator.cli.errors import in_sentences


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (run, local):
        app.command()(in_sentences(command))


def run(
    file: Annotated[
        Path,
        typer.Option(
            "-f", "--file", metavar="FILE", help="A BalancedSource; edit it while this runs."
        ),
    ],
    folder: Annotated[
        Path | None,
        typer.Option(
            "--dir",
            metavar="FOLDER",
            help="Folder for documents and log; .balanced-source/NAME by default.",
        ),
    ] = None,
    page: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            metavar="PORT",
            help="Port of the status page, http://localhost:PORT; 0 serves none.",
        ),
    ] = 0,
) -> None:
    """Run the whole manifest on this machine, without Kubernetes: source, transform and sink.

    Changes of the file, for example of parallelism, take effect while it runs. Changes of
    spec.application, and of how records of files are parsed, take effect at the next start. Secrets
    and ConfigMaps are folders beside the file. Ctrl-C or SIGTERM stops the query after its
    micro-batch.
    """
    from balanced_source_operator.laptop.picture import picture
    from balanced_source_operator.laptop.run import run as run_manifest
    from balanced_source_operator.logs import configure_quiet_logging

    configure_quiet_logging()
    # stopped by a supervisor or at the end of a login session, it ends the driver as it does at
    # Ctrl-C
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with picture(Console()) as show:
        ending = run_manifest(file, folder, show, page_port=page)
    typer.echo(ending.sentence)
    raise typer.Exit(ending.code)


def local(
    file: Annotated[
        Path,
        typer.Option(
            "-f", "--file", metavar="FILE", help="A BalancedSource; edit it while this runs."
        ),
    ],
    folder: Annotated[
        Path, typer.Option("--dir", metavar="FOLDER", help="Folder for the documents.")
    ],
) -> None:
    """Serve one source without Kubernetes. Start the query yourself, with option assignmentDir."""
    from balanced_source_operator.local import LocalOperator
    from balanced_source_operator.logs import configure_logging
    from balanced_source_operator.validation.manifests import located, problems_in

    configure_logging()
    with located(file):
        operator = LocalOperator(file, folder, explain=problems_in)
    operator.run()
