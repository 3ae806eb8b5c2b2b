"""Each problem is announced once: when it appears, and again if it comes back."""

from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from balanced_source.api import Problem
from balanced_source_operator.runtime.announcer import Announcer
from support.builders import identity

pytestmark = pytest.mark.asyncio


class Events:
    """Keeps the messages that were posted, and refuses more while it is told to.

    Attributes:
        posted: the messages.
        accepts: whether events can be posted.
    """

    def __init__(self) -> None:
        self.posted: list[str] = []
        self.accepts = True

    async def post(self, _reason: str, message: str, *, warning: bool) -> bool:
        assert warning
        if self.accepts:
            self.posted.append(message)
        return self.accepts


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def announcer(events: Events) -> Announcer:
    structlog.reset_defaults()
    recorder: Any = events
    return Announcer(identity(), recorder)


def problem(message: str = "it is lost", *, scope: str = "1") -> Problem:
    return Problem(reason="HostLost", message=message, scope=scope)


async def test_a_problem_is_announced_once_while_it_lasts(
    announcer: Announcer, events: Events
) -> None:
    for message in ("lost for 60 s", "lost for 60 s", "lost for 120 s"):
        await announcer.announce([problem(message)])

    assert events.posted == ["lost for 60 s"]


async def test_a_problem_that_comes_back_is_announced_again(
    announcer: Announcer, events: Events
) -> None:
    with capture_logs() as logs:
        for problems in ([problem()], [], [problem()]):
            await announcer.announce(problems)

    assert events.posted == ["it is lost", "it is lost"]
    assert [(line["event"], line["message"]) for line in logs] == [
        ("problem resolved", "it is lost")
    ]


async def test_the_same_problem_of_another_part_is_announced_too(
    announcer: Announcer, events: Events
) -> None:
    await announcer.announce([problem()])
    await announcer.announce([problem(), problem("another one is lost", scope="2")])

    assert events.posted == ["it is lost", "another one is lost"]


async def test_the_first_of_several_messages_of_one_problem_is_announced(
    announcer: Announcer, events: Events
) -> None:
    await announcer.announce([problem("first"), problem("second")])

    assert events.posted == ["first"]


async def test_an_event_that_cannot_be_posted_is_tried_again(
    announcer: Announcer, events: Events
) -> None:
    events.accepts = False
    await announcer.announce([problem()])
    events.accepts = True
    await announcer.announce([problem()])
    await announcer.announce([problem()])

    assert events.posted == ["it is lost"]
