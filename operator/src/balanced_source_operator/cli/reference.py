"""``reference``: a connector's page of options and fields, for its own documentation."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import typer

from balanced_source.api import Connector
from balanced_source.errors import ConnectorError
from balanced_source_adapters.connectors import installed
from balanced_source_adapters.registrations import BUILT_IN
from balanced_source_operator.cli.errors import in_sentences
from balanced_source_operator.cli.markdown import field_table, table

MODULE: Final = "balanced_source_spark.option_list"
"""Prints the options as JSON. In a process of its own: the operator's side never loads Spark's."""

_PATIENCE: Final = 60.0
"""Seconds until that process has imported a connector."""

_NO_SPARK: Final = "Install `balanced-source[spark]` beside the connector to list its options.\n"
_UNNAMED: Final = "The connector does not name its options.\n"
_NO_SPEC: Final = "The connector has no operator half: it does not run under the operator.\n"


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(in_sentences(reference))


def reference(
    connector: Annotated[
        str,
        typer.Argument(
            metavar="CONNECTOR", help="Name of an installed connector, as its package registers it."
        ),
    ],
) -> None:
    """Print the reference page of a connector as Markdown: its options and the fields of its spec.

    For authors of connectors, who publish it with their package.
    """
    typer.echo(page(connector), nl=False)


def page(kind: str) -> str:
    """Return the page.

    Raises:
        ConnectorError: there is no such connector, or it is broken.
    """
    connector = installed().get(kind)
    return "\n".join(
        [
            f"# Connector {kind}",
            "",
            f"From the package `{installed().package_of(kind)}`.",
            "",
            '## Options of format("balanced")',
            "",
            _options_of(connector),
            "## Fields of the manifest",
            "",
            _fields_of(connector),
        ]
    )


def _options_of(connector: Connector) -> str:
    if not connector.spark:
        return "The connector has no Spark half: Spark cannot read it.\n"
    if importlib.util.find_spec("pyspark") is None:
        return _NO_SPARK
    groups = _listed(connector.kind)
    if groups is None:
        return _UNNAMED
    lead = f'Set them with `.option("connector", "{connector.kind}")`.\n'
    return "\n".join([lead, *(_group(name, rows) for name, rows in groups.items())])


def _group(name: str, options: Sequence[Mapping[str, str]]) -> str:
    head = f"### {name}\n\n" if name else ""
    rows = [(f"`{option['name']}`", option["default"], option["meaning"]) for option in options]
    return head + table(("option", "default", "meaning"), rows)


def _listed(kind: str) -> Mapping[str, Sequence[Mapping[str, str]]] | None:
    command = [sys.executable, "-m", MODULE, kind]
    # Our own interpreter and module; a connector was found by this name
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)  # noqa: S603
    if done.returncode != 0:
        why = done.stderr.strip().splitlines() or ["it ended without a message"]
        raise ConnectorError(f"the options of connector {kind!r} cannot be listed: {why[-1]}")
    found: Mapping[str, Sequence[Mapping[str, str]]] | None = json.loads(done.stdout)
    return found


def _fields_of(connector: Connector) -> str:
    if not connector.operator:
        return _NO_SPEC
    from balanced_source_operator.contract.half import half_of
    from balanced_source_operator.spec.crd import structural_schema

    kind = connector.kind
    half = half_of(kind)
    where = f"spec.source.{kind}" if kind in BUILT_IN else "spec.source.custom.config"
    schema: Mapping[str, Any] = structural_schema(half.spec)
    lead = f"{half.description}\n"
    if kind not in BUILT_IN:
        lead = f"{lead}\n`spec.source.custom.connector` is `{kind}`.\n"
    return f"{lead}\n{field_table(schema, where)}"
