"""For all tests: markers by folder, and an event loop that is closed in the end."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("balanced-source", deadline=None)
settings.load_profile("balanced-source")  # no test asserts a duration: a busy machine is no failure

FOLDERS = {"unit": "unit", "contract": "contract", "integration": "integration", "e2e": "e2e"}
"""Folder below this one → marker of its tests."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by folder, and keep those that share real parts on one worker (`-n 2 --dist loadgroup`)."""
    here = Path(__file__).parent
    for item in items:
        parts = item.path.relative_to(here).parts if here in item.path.parents else ("",)
        if parts[0] in FOLDERS:
            item.add_marker(FOLDERS[parts[0]])
        if parts[0] != "unit":
            item.add_marker(pytest.mark.xdist_group("/".join(parts[:2])))
            # Threads that follow a document die with the process and leave their sockets to it; the collector may
            # find these while another folder's test runs.
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


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
