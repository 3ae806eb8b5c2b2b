"""Errors of commands as sentences and exit codes."""

import functools
import os
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn, ParamSpec, TypeVar

import typer

from balanced_source.errors import BalancedSourceError, in_short
from balanced_source_operator.validation.manifests import InvalidManifestError

P = ParamSpec("P")
T = TypeVar("T")

INVALID: Final = 1
"""The input was read, and something is wrong with it; or a check failed."""

UNUSABLE: Final = 2
"""The command could not do its work: a file cannot be read, the cluster does not answer."""

INTERNAL: Final = 70
"""A defect of the command itself (EX_SOFTWARE)."""


def fail(message: str, code: int = UNUSABLE) -> NoReturn:
    """Print a sentence to stderr and end the command."""
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(code)


def in_sentences(command: Callable[P, T]) -> Callable[P, T]:
    """Return a command that prints the project's errors as sentences, without a traceback."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except InvalidManifestError as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(INVALID) from None
        except BalancedSourceError as error:
            fail(str(error))

    return guarded


def report_of(error: Exception) -> str:
    """Write the traceback of a defect to a file, and return the sentence that names it."""
    summary = in_short(error)[:500]
    try:
        number, name = tempfile.mkstemp(prefix="balanced-source-", suffix=".txt")
        os.close(number)
        Path(name).write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    except OSError:
        return f"Error: a defect of balanced-source: {summary}. Please report it"
    return f"Error: a defect of balanced-source: {summary}. Please report it with the file {name}"
