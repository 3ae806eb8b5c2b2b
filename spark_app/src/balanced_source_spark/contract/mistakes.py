"""Turns exceptions that a connector raises by mistake into sentences.

Which connector, where, and what to do.

Spark shows the text of an exception that ends a query or a task. A traceback would tell its user
about our code, so it goes to the log, where the authors of the connector find it.

Tasks import this, so it imports little.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

from balanced_source.errors import (
    BalancedSourceError,
    ConnectorContractError,
    ContractViolationError,
)
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_adapters.mistakes import broken_contract, mistake, package_of
from balanced_source_spark.contract.call_watch import CallWatch

log = get_logger(__name__)


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

    A method that does not return is told of, see `CallWatch`. One thread at a time is in a method.

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
        except BaseException as error:
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
        connector, now = self._connector, time.monotonic
        watch = CallWatch(self._hang_teller(name))

        # Without `explained`: a context manager takes longer than many a method.
        @wraps(found)
        def call(*args: Any, **named: Any) -> Any:
            watch.since = now()
            try:
                return found(*args, **named)
            except BalancedSourceError:
                raise
            # Also a KeyboardInterrupt: no one presses Ctrl-C in a process that Spark has started.
            except BaseException as error:
                raise mistake(connector, name, error) from error
            finally:
                watch.since = 0.0

        return call

    def _hang_teller(self, method: str) -> Callable[[float | None], None]:
        """Return what tells of a method that has not returned for so long; None: it has.

        It must not hold this object: in a cycle, readers of tasks would outlive their tasks.
        """
        return partial(_log_hang, self._connector, method)


def _log_hang(connector: str, method: str, seconds: float | None) -> None:
    if seconds is not None:
        log.warning(hanging(connector, method, seconds))


def hanging(connector: str, method: str, seconds: float) -> str:
    """Return the sentence about a method of a connector that does not return."""
    return (
        f"connector {connector!r} of {package_of(connector)} has been in {method} for"
        f" {seconds:.0f} s, and nothing continues before it returns. Check that what it reads can"
        " be reached. If it can, report this to the authors of the package"
    )
