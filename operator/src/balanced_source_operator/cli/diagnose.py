"""``doctor``: what keeps sources from running, and what to do."""

import asyncio
import json
from dataclasses import asdict
from typing import Annotated

import typer

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.cli.errors import INVALID, in_sentences
from balanced_source_operator.cli.options import (
    ContextOption,
    NamespaceOption,
    Output,
    OutputOption,
)
from balanced_source_operator.doctor import Diagnosis, Fault, examine
from balanced_source_operator.doctor.examine import is_healthy
from balanced_source_operator.doctor.finding import as_text, error
from balanced_source_operator.kube.connect import connect


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(in_sentences(doctor))


def doctor(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name of a BalancedSource. Default: all in the namespace."
        ),
    ] = "",
    *,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    operator: Annotated[
        str,
        typer.Option(
            metavar="NAMESPACE:ACCOUNT",
            help="Account of the operator, if its Deployment cannot be found.",
        ),
    ] = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Check cluster, CRD, rights, Spark operator, sources and brokers; say what to fix.

    Exit code: 0 if no fault was found, 1 otherwise.
    """
    account = _account(operator) if operator else None
    found = asyncio.run(
        _examined(name, namespace, context, account, is_shown=output is Output.TABLE)
    )
    if output is Output.JSON:
        typer.echo(json.dumps([asdict(diagnosis) for diagnosis in found], indent=2))
    if not is_healthy(found):
        raise typer.Exit(INVALID)


def _account(text: str) -> tuple[str, str]:
    namespace, separator, account = text.partition(":")
    if not (separator and namespace and account):
        raise InvalidSpecError(f"must be NAMESPACE:ACCOUNT, not {text!r}", field="--operator")
    return namespace, account


async def _examined(
    name: str, namespace: str, context: str, account: tuple[str, str] | None, *, is_shown: bool
) -> list[Diagnosis]:
    found = []
    try:
        async with connect(context=context) as (api, default):
            async for diagnosis in examine(api, namespace or default, name, account=account):
                found.append(diagnosis)
                if is_shown:
                    typer.echo(as_text(diagnosis))
    except InvalidSpecError as problem:  # no kubeconfig
        remedy = (
            "Log in to a cluster, or set KUBECONFIG. A source on this machine:"
            " balanced-source status --dir .balanced-source/NAME."
        )
        found.append(error("cluster", Fault.API_SERVER_UNREACHABLE, str(problem), remedy))
        if is_shown:
            typer.echo(as_text(found[-1]))
    return found
