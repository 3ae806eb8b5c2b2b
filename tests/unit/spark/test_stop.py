"""The query ends: everything that was opened is closed."""

from typing import Any

import pytest

from balanced_source_spark.options import Options
from balanced_source_spark.planner import StreamPlanner


class Part:
    """Closes, or fails to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.closed = 0
        self._error = error

    def close(self) -> None:
        self.closed += 1
        if self._error is not None:
            raise self._error


def reader(**parts: Any) -> StreamPlanner:
    made = StreamPlanner(Options())
    made.__dict__.update(parts)
    return made


@pytest.mark.scenario("D18")
@pytest.mark.parametrize("failing", ["_runtime", "_ends", "_hooks"])
def test_d18_a_failed_close_is_reported_and_keeps_nothing_else_open(failing: str) -> None:
    """With the cause, as upstream tells it of a former enumerator.

    Here of each part of the planning process.
    """
    cause = RuntimeError("socket is gone")
    parts = {
        name: Part(cause if name == failing else None) for name in ("_runtime", "_ends", "_hooks")
    }

    with pytest.raises(RuntimeError, match="socket is gone"):
        reader(**parts, _aligner=None).stop()

    assert [part.closed for part in parts.values()] == [1, 1, 1]


def test_an_unused_part_is_not_created_only_to_be_closed() -> None:
    made = reader()
    made.stop()

    assert not {"_runtime", "_ends", "_aligner"} & made.__dict__.keys()
