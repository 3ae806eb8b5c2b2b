"""The runtime's clock is the event loop's."""

import logging
from collections.abc import Iterator

import pytest
import structlog

from balanced_source_operator.runtime import (
    alignment,
    autoscaler,
    children,
    coordination,
    events,
    metadata,
    refusals,
    source_runtime,
    status_writer,
)
from support import virtual_time


@pytest.fixture(autouse=True)
def _virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (
        alignment,
        autoscaler,
        children,
        coordination,
        events,
        metadata,
        refusals,
        source_runtime,
        status_writer,
    ):
        monkeypatch.setattr(module, "time", virtual_time.time_module())


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    """Hundreds of operators live and die here."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()
