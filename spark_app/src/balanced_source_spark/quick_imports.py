"""Imports while a query waits for them."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quick_imports() -> Iterator[None]:
    """Import without the cyclic garbage collector.

    What modules create stays, so a collection in between finds nothing. Those that it makes all the
    same are a tenth of what the imports of a planning process take. Later ones need not look at it
    either.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            gc.enable()
