"""Turns exceptions that a connector raises by mistake into sentences.

Which connector, where, and what to do.

Spark shows the text of an exception that ends a query. A traceback would tell its user about our
code, so it goes to the log, where the authors of the connector find it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from balanced_source.errors import BalancedSourceError, ConnectorError
from balanced_source_adapters.connectors import installed
from balanced_source_adapters.lazy_log import get_logger

log = get_logger(__name__)


@contextmanager
def explained(connector: str, where: str) -> Iterator[None]:
    """Turn what is raised by mistake into a `ConnectorError`.

    Errors of this project say what to do themselves.

    Args:
        connector: its kind.
        where: what it was asked: a method of the contract.
    """
    try:
        yield
    except BalancedSourceError:
        raise
    except Exception as error:
        raise mistake(connector, where, error) from error


def mistake(connector: str, where: str, error: Exception) -> ConnectorError:
    """Return the error that a mistake of a connector is, and log the traceback."""
    log.error("a connector failed", connector=connector, method=where, exc_info=error)
    return ConnectorError(
        f"connector {connector!r} of {_package(connector)} failed in {where}:"
        f" {type(error).__name__}: {error}. Report this to the authors of the package, with the"
        " traceback from the log"
    )


def _package(connector: str) -> str:
    try:
        return installed().package_of(connector)
    except ConnectorError:
        return "an unknown package"
