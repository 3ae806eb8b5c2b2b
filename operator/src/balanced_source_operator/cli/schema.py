"""``infer-schema``: the columns of what a source reads, for the manifest."""

from pathlib import Path
from typing import Annotated

import typer

from balanced_source_operator.cli.errors import in_sentences


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(in_sentences(infer_schema))


def infer_schema(
    file: Annotated[
        Path,
        typer.Option(
            "-f", "--file", metavar="FILE", help="A BalancedSource; its schema may be missing."
        ),
    ],
) -> None:
    """Read some of a manifest's files and print their columns as DDL, for use in the manifest.

    Run it where the files are. Secrets are folders beside the manifest, as for run.
    """
    from balanced_source_adapters.mistakes import expect, explained
    from balanced_source_adapters.mounted_secrets import MountedSecrets
    from balanced_source_operator.contract.half import half_of
    from balanced_source_operator.local import read_spec
    from balanced_source_operator.validation.manifests import located

    with located(file):
        source = read_spec(file).source
    half = half_of(source.kind)
    config, secrets = source.config(half), MountedSecrets(file.parent)
    with explained(source.kind, "infer_schema"):
        found: object = half.infer_schema(config, secrets, field=source.field)
        expect(found, str, "the columns as a text")
    typer.echo(found)
