"""The operator stops after the tasks of its sources have ended."""

import asyncio
from typing import Any

import pytest

from balanced_source_operator.runtime.supervisor import Supervisor

pytestmark = pytest.mark.asyncio


async def test_stopping_waits_until_all_tasks_have_ended() -> None:
    """The next operator must not work beside a turn that is being cut off."""
    nothing: Any = None
    supervisor, ended = Supervisor(nothing), list[int]()

    async def serve(number: int) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            ended.append(number)
            if number:
                raise ValueError("a turn that fails at its end")

    for number in range(3):
        task = asyncio.create_task(serve(number))
        supervisor._running["shop", str(number)] = (nothing, nothing, task)
    await asyncio.sleep(0)
    assert supervisor.sources == 3

    await supervisor.stop()

    assert ended == [0, 1, 2]
    assert supervisor.sources == 0
