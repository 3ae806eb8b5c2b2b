"""The runtime's clock is the event loop's."""

import logging
from collections.abc import Iterator

import pytest
import structlog

from support.played_story import virtual_clock


@pytest.fixture(autouse=True)
def _virtual_time() -> Iterator[None]:
    with virtual_clock():
        yield


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    """Hundreds of operators live and die here."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()
