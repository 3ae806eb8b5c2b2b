"""``report``: a support bundle of one source, without secrets."""

import asyncio
import os
import time
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Final

import typer

from balanced_source.errors import InvalidSpecError
from balanced_source.names import counted
from balanced_source_operator.bundle import Item, collect
from balanced_source_operator.bundle.collect import TAIL
from balanced_source_operator.cli.errors import in_sentences
from balanced_source_operator.cli.options import ContextOption, NamespaceOption
from balanced_source_operator.kube.connect import connect

_NOTE: Final = """Support bundle of BalancedSource {name} in namespace {namespace}, made at {time}.

source.yaml    the resource and its status
doctor.txt     what `balanced-source doctor` finds
events.yaml    events of the source, its applications and pods
objects/       the objects that the operator has made, and the pods
operator/      the pods of the operator
logs/          the last {tail} lines of each container
missing.txt    what could not be read, and why

Secrets are not read. Values of names that hold secrets, logins in URLs, tokens, keys and
certificates are replaced by [redacted]. Names of hosts, topics, files and users are not. Your own
program may log anything: look at logs/ before you send the bundle.
"""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(in_sentences(report))


def report(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the BalancedSource.")],
    *,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Zip file to write; it must not exist.")
    ] = None,
) -> None:
    """Write a support bundle: resource, status, events, objects and logs, without secrets."""
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    file = to if to is not None else Path(f"balanced-source-report-{name}-{now}.zip")
    if file.exists():
        raise InvalidSpecError(f"{file} exists: name another file", field="--to")
    asyncio.run(_write(file, name, namespace, context, now))


async def _write(file: Path, name: str, namespace: str, context: str, now: str) -> None:
    async with connect(context=context) as (api, default):
        items = collect(api, namespace or default, name)
        note = _NOTE.format(name=name, namespace=namespace or default, time=now, tail=TAIL)
        found, missing = await _fill(file, items, note)
    typer.echo(f"report: {file} ({counted(found, 'file')}, {missing} could not be read)")


async def _fill(file: Path, items: AsyncIterator[Item], note: str) -> tuple[int, int]:
    """The file is made when the first item is there: a source that does not exist leaves none."""
    found, missing = 0, list[str]()
    first = await anext(items)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with (
        os.fdopen(descriptor, "wb") as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as bundle,
    ):
        bundle.writestr("README.txt", note)
        bundle.writestr(first.path, first.text)
        async for item in items:
            typer.echo(f"{'missing' if item.is_missing else 'read   '}  {item.path}", err=True)
            if item.is_missing:
                missing.append(f"{item.path}: {item.text}")
            else:
                bundle.writestr(item.path, item.text)
                found += 1
        bundle.writestr("missing.txt", "".join(f"{line}\n" for line in missing) or "nothing\n")
    return found + 1, len(missing)
