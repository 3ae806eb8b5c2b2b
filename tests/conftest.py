"""For all tests: markers by folder, and an event loop that is closed in the end."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

settings.register_profile("balanced-source", deadline=None)
settings.load_profile("balanced-source")  # no test asserts a duration: a busy machine is no failure

FOLDERS = {"unit": "unit", "contract": "contract", "integration": "integration", "e2e": "e2e"}
"""Folder below this one → marker of its tests."""

LONGEST_FIRST = ("integration/spark", "integration/cluster", "integration/testbed", "integration/kafka")
"""Folders in the order in which workers take them; the others follow."""


class FolderScheduling(LoadScopeScheduling):  # type: ignore[misc] - xdist has no types
    """One worker runs all tests of a folder: they share real parts. Groups by marker do nothing with pytest 9."""

    def _split_scope(self, nodeid: str) -> str:
        return _folder(nodeid.partition("::")[0].removeprefix("tests/"))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FolderScheduling | None:
    """`--dist loadscope` is by folder here."""
    return FolderScheduling(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by folder, and put the folders first that take longest."""
    here = Path(__file__).parent
    for item in items:
        parts = item.path.relative_to(here).parts if here in item.path.parents else ("",)
        if parts[0] in FOLDERS:
            item.add_marker(FOLDERS[parts[0]])
        if parts[0] != "unit":
            # Threads that follow a document die with the process and leave their sockets to it; the collector may
            # find these while another folder's test runs.
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
    ranks = {folder: rank for rank, folder in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: ranks.get(_folder(item.nodeid.removeprefix("tests/")), len(ranks)))


def _folder(path: str) -> str:
    return "/".join(path.split("/")[:2])


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
