"""Topic ids as they were a moment ago, for those who ask for the ends of partitions very often."""

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

MOMENT: Final = 1.0
"""Seconds for which ids are remembered. A query asks for ends up to 50 times a second, and only the
controller knows ids: so it is spared nearly all questions."""

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class IdMemory:
    """Ids of the topics of one cluster. Thread-safe: what is remembered is replaced as a whole.

    Its user must bear that a topic was deleted and created again meanwhile. Planners do: tasks
    compare ids after they have read, and deliver nothing of another topic. It is rare, too: who
    looks while the topic is missing asks again, and remembers that there is none.

    Args:
        moment: see `MOMENT`.
        clock: seconds of a clock that never goes back.
    """

    def __init__(
        self, *, moment: float = MOMENT, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._moment = moment
        self._clock = clock
        self._kept: tuple[float, Mapping[str, str]] = -moment, _NONE

    def recall(self) -> Mapping[str, str]:
        """Return the ids that were kept last, by topic; none if that was too long ago."""
        kept_at, ids = self._kept
        return ids if self._clock() - kept_at < self._moment else _NONE

    def keep(self, ids: Mapping[str, str]) -> None:
        """Remember what a cluster has just answered."""
        self._kept = self._clock(), ids
