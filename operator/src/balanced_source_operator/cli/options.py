"""Options that several commands share."""

import enum
from typing import Annotated

import typer


class Output(enum.StrEnum):
    """How results are printed."""

    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[
    Output,
    typer.Option(
        "-o", "--output", metavar="table|json", help="Print a table, or JSON for programs."
    ),
]
NamespaceOption = Annotated[
    str,
    typer.Option(
        "-n",
        "--namespace",
        metavar="NAMESPACE",
        help="Namespace. Default: that of kubectl's context.",
    ),
]
ContextOption = Annotated[
    str,
    typer.Option(
        "--context", metavar="CONTEXT", help="Context of the kubeconfig. Default: the current one."
    ),
]
