"""An action, and a step of a walk."""

import abc
from dataclasses import dataclass

from walks.walk import Walk


class Action(abc.ABC):
    """Something that happens on a walk. Its attributes say with what."""

    @abc.abstractmethod
    async def carry_out(self, walk: Walk) -> None:
        """Let it happen."""


@dataclass(frozen=True, slots=True)
class Step:
    """An action, and the seconds until the next one."""

    action: Action
    wait: int
