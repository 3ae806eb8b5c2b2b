"""Stories of an operator in memory, played to their end in virtual time."""

import contextlib
import importlib
import pkgutil
import time
from collections.abc import Callable, Coroutine, Iterator
from types import ModuleType
from typing import Any, TypeAlias
from unittest import mock

from balanced_source_operator import runtime
from support import virtual_time
from support.cluster_story import Story

Play: TypeAlias = Callable[[Story], Coroutine[Any, Any, None]]


@contextlib.contextmanager
def virtual_clock() -> Iterator[None]:
    """Every module of the runtime that reads a clock reads the event loop's."""
    with contextlib.ExitStack() as stack:
        for module in _timed():
            stack.enter_context(mock.patch.object(module, "time", virtual_time.time_module()))
        yield


def _timed() -> list[ModuleType]:
    """Found, not listed: a new module that looks at the clock cannot be forgotten."""
    names = [found.name for found in pkgutil.iter_modules(runtime.__path__)]
    modules = [importlib.import_module(f"{runtime.__name__}.{name}") for name in names]
    return [module for module in modules if getattr(module, "time", None) is time]


def played(play: Play, story: Story | None = None) -> Story:
    """Plays, ends all operators, and fails if a rule was broken on the way."""
    story = story or Story()

    async def run() -> None:
        await play(story)
        await story.end()

    virtual_time.run(run())
    assert story.broken == []
    return story
