"""The sample connector as users get it, and a query that reads with it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.connector.journal_scene import Scene
from support.log_api import LogApi
from support.wheels import SAMPLE, Installed, install
from testbed.versions import CHECKOUT


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The product and the sample connector from their wheels."""
    return install(tmp_path_factory.mktemp("wheels"), CHECKOUT, SAMPLE)


@pytest.fixture
def scene(tmp_path: Path, installed: Installed) -> Iterator[Scene]:
    """Three logs, and a query that is not started yet."""
    with LogApi() as api, contextlib.closing(Scene(tmp_path, installed, api)) as made:
        made.grow(250)
        yield made
