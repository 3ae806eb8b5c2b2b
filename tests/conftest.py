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

collect_ignore = ["page"]  # a browser's tests have an environment of their own: `make test-page`

FOLDERS = {"unit": "unit", "contract": "contract", "integration": "integration", "e2e": "e2e"}
"""Folder below this one → marker of its tests."""

LONGEST_FIRST = (
    "integration/cluster",
    "integration/spark",
    "integration/testbed",
    "integration/kafka",
    "integration/main_job",
    "integration/chart",
    "integration/kafka/test_brokers.py",
    "integration/spark/test_executors.py",
    "integration/spark/test_driver_killed.py",
    "integration/kafka/test_rotation.py",
)
"""Folders, and files with parts of their own, in the order in which workers take them; the others
follow."""


class FolderScheduling(LoadScopeScheduling):  # type: ignore[misc] - xdist has no types
    """One worker runs what shares real parts: a folder, as a rule.

    Groups by marker do nothing with pytest 9.
    """

    def _split_scope(self, nodeid: str) -> str:
        return _scope(nodeid)


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
            # Threads that follow a document die with the process and leave their sockets to it; the
            # collector may find these while another folder's test runs.
            item.add_marker(
                pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
            )
    ranks = {scope: rank for rank, scope in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: ranks.get(_scope(item.nodeid), len(ranks)))


def _scope(nodeid: str) -> str:
    path = nodeid.partition("::")[0].removeprefix("tests/")
    return path if path in LONGEST_FIRST else "/".join(path.split("/")[:2])


@pytest.fixture(scope="session", autouse=True)
def _event_loop_of_the_main_thread() -> Iterator[None]:
    """Give the main thread a loop that is closed in the end.

    pytest-asyncio asks for the present loop before each asynchronous test; if there is none, Python
    3.11 makes one, which no one closes, and its warning would fail some later test.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()
