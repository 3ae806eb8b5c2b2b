"""Which requests in a report reach the enumerator."""

from collections.abc import Mapping
from typing import Any

import pytest

from balanced_source.coordinator import CallCompleted, ExecuteCall, ReportReceived
from balanced_source.coordinator import SourceCoordinator as Coordinator
from balanced_source.coordinator.requests import answered
from balanced_source.documents.report import HostReport
from support.pull_source import NumberLists


class Scene:
    """A source of one list and two readers; what the enumerator is asked is noted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        source = NumberLists(count=1)
        self.coordinator: Coordinator[Any, Any] = Coordinator(source, parallelism=2)
        (call,) = [
            effect for effect in self.coordinator.start(now=0.0) if isinstance(effect, ExecuteCall)
        ]
        self.coordinator.handle(CallCompleted(call.call_id, source.execute(call.call)), now=0.0)
        self.asked: list[Mapping[int, int]] = []
        self.places: list[str | None] = []
        self.sequence = 0
        self.report({})
        enumerator = self.coordinator.enumerator
        handle = enumerator.handle_split_requests

        def noted(counts: Mapping[int, int], host: str | None) -> None:
            self.asked.append(counts)
            self.places.append(host)
            handle(counts, host)

        monkeypatch.setattr(enumerator, "handle_split_requests", noted)

    def report(self, requests: Mapping[int, int], **more: Any) -> None:
        self.sequence += 1
        report = HostReport(incarnation=1, sequence=self.sequence, requests=requests, **more)
        self.coordinator.handle(ReportReceived(report), now=float(self.sequence))


def test_a_request_is_passed_on_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)

    scene.report({0: 1, 1: 1})
    assert scene.asked == [{0: 1, 1: 1}]
    assert scene.coordinator.state.no_more_splits == {1}
    scene.report({0: 1, 1: 1})

    assert scene.asked == [{0: 1, 1: 1}], "one was answered, the other was told that none follows"


@pytest.mark.parametrize(("location", "place"), [("node-1", "node-1"), ("", None)])
def test_a_request_says_where_its_reader_is_unless_that_is_unknown(
    location: str, place: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(monkeypatch)

    scene.report({0: 1}, location=location)

    assert scene.places == [place]


def test_a_request_is_open_until_each_of_its_splits_was_given() -> None:
    assert answered({0: 3, 1: 1, 2: 1}, [0, 1, 0]) == {0: 1, 2: 1}


def test_requests_of_unknown_readers_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)

    scene.report({7: 1})

    assert scene.asked == []


def test_a_reader_that_was_told_of_the_end_is_not_heard_again_after_a_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its report is older than that word, and the new operator has asked nothing yet."""
    scene = Scene(monkeypatch)
    scene.report({0: 1, 1: 1})
    scene.asked.clear()
    scene.coordinator._context.asked = {}

    scene.report({1: 1})

    assert scene.asked == []
