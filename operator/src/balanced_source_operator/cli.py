"""The command ``balanced-source``."""

import os

import typer

from balanced_source.errors import BalancedSourceError

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
def crd() -> None:
    """Print the CustomResourceDefinition."""
    from balanced_source_operator.spec.crd import custom_resource_definition, to_yaml

    typer.echo(to_yaml(custom_resource_definition()), nl=False)


if __name__ == "__main__":
    app()
