"""Turns exceptions that a connector raises by mistake into sentences.

Which connector, where, and what to do.

Spark shows the text of an exception that ends a query or a task. A traceback would tell its user
about our code, so it goes to the log, where the authors of the connector find it.

Tasks import this, so it imports little.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from balanced_source.errors import (
    BalancedSourceError,
    ConnectorContractError,
    ContractViolationError,
)
from balanced_source_adapters.mistakes import broken_contract, explained, mistake

__all__ = ["ExplainingProxy", "attributed", "explained", "mistake"]


@contextmanager
def attributed(connector: str) -> Iterator[None]:
    """Name the connector in an error about its broken contract."""
    try:
        yield
    except ConnectorContractError:  # a part of a hybrid source, which is named already
        raise
    except ContractViolationError as error:
        raise broken_contract(connector, error) from error


class ExplainingProxy:
    """Passes everything on to an object of a connector, such that its mistakes are sentences.

    Args:
        made: of the connector.
        connector: its kind.
    """

    def __init__(self, made: object, connector: str) -> None:
        self._made = made
        self._connector = connector

    def __getattr__(self, name: str) -> Any:
        try:
            found = getattr(self._made, name)
        except (Exception, SystemExit) as error:
            # What is not there is no mistake: a log that shows variables looks for much.
            if isinstance(error, BalancedSourceError) or not hasattr(type(self._made), name):
                raise
            raise mistake(self._connector, name, error) from error
        if not callable(found):
            return found
        # Kept: some methods are called once per record.
        method = self.__dict__[name] = self._method(name, found)
        return method

    def _method(self, name: str, found: Callable[..., Any]) -> Callable[..., Any]:
        connector = self._connector

        # Without `explained`: a context manager takes longer than many a method.
        @wraps(found)
        def call(*args: Any, **named: Any) -> Any:
            try:
                return found(*args, **named)
            except BalancedSourceError:
                raise
            except (Exception, SystemExit) as error:
                raise mistake(connector, name, error) from error

        return call
