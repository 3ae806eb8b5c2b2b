"""The pull model: readers ask for splits (J6)."""

from typing import Any

import pytest

from balanced_source.api import SPLIT_REQUEST
from balanced_source.coordinator import (
    HostLost,
    PublishAssignment,
    ReportReceived,
    SourceCoordinator,
)
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host import ReaderHost
from support.numbers import NumbersSplit
from support.numbers_source import NumbersSource


class PullingHost:
    """A host of one reader that asks for work, on a coordinator."""

    def __init__(self, coordinator: SourceCoordinator[Any, Any]) -> None:
        self.coordinator = coordinator
        self.sequence = 0
        self.host = ReaderHost(incarnation=0)

    def starts(self) -> None:
        """A new incarnation, with an empty Spark checkpoint."""
        self.host = ReaderHost(incarnation=self.host.incarnation + 1).on_committed(StreamOffset())
        self.sequence = 0
        self._report()

    def asks(self) -> set[str]:
        """What it has been given after a further request."""
        self.host = self.host.send_event(0, SPLIT_REQUEST)
        self._report()
        assert self.host.assignment is not None
        return {str(split_id[0]) for split_id in self.host.assignment.owners}

    @property
    def is_told_the_end(self) -> bool:
        return self.host.assignment is not None and 0 in self.host.assignment.no_more_splits

    def _report(self) -> None:
        self.sequence += 1
        report = self.host.report(sequence=self.sequence, location="node-1")
        assert report is not None
        for effect in self.coordinator.handle(ReportReceived(report), now=0.0):
            if isinstance(effect, PublishAssignment):
                self.host = self.host.on_assignment(effect.assignment)


@pytest.mark.scenario("J6")
def test_j6_a_reader_that_restarts_asks_again_and_gets_the_same() -> None:
    """Two splits for two requests, then the end.

    Nothing was adopted, so the restarted reader gets all of it again.
    """
    source = NumbersSource((NumbersSplit(name="s0"), NumbersSplit(name="s1")))
    coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(source, parallelism=1)
    coordinator.start(now=0.0)
    puller = PullingHost(coordinator)

    for _ in range(2):
        puller.starts()
        assert not puller.is_told_the_end
        assert puller.asks() == {"s0"}
        assert puller.asks() == {"s0", "s1"}
        assert not puller.is_told_the_end
        puller.asks()
        assert puller.is_told_the_end
        coordinator.handle(HostLost("0", puller.host.incarnation), now=0.0)

    assert source.log.count("0 asks from node-1") == 6
