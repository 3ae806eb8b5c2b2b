"""Fixtures of the testbed's unit tests."""

import asyncio
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _event_loop_of_the_main_thread() -> Iterator[None]:
    """Give the main thread a loop that is closed in the end.

    pytest-asyncio asks for the present loop before each asynchronous test; if there is none, Python 3.11
    makes one, which nobody closes, and its warning would fail some later test.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()
