"""Has Spark quote an error of ours without a traceback, so that its first line says what to do."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from balanced_source.errors import (
    BalancedSourceError,
    ConnectorContractError,
    ContractViolationError,
)

_HIDE: Final = "SPARK_HIDE_TRACEBACK"
"""Spark's workers leave out the traceback of an error if this variable is set when they report it.
"""

_WORKER: Final = "pyspark.worker_util"
"""A module that Spark's Python workers load, and programs do not."""


@contextmanager
def plain_errors() -> Iterator[None]:
    """Leave out the traceback of an error that tells the user what to do.

    A bug keeps its traceback.

    A worker ends after it has reported an error, so that the variable hides no one else's
    traceback.
    """
    try:
        yield
    except BalancedSourceError as error:
        is_said = isinstance(error, ConnectorContractError) and not error.is_ours
        if isinstance(error, ContractViolationError) and not is_said:
            raise
        if _WORKER in sys.modules:
            os.environ[_HIDE] = "1"
        raise
