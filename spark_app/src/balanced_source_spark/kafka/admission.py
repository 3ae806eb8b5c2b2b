"""The limits of the source applied to a micro-batch.

Pure arithmetic in `connectors.kafka.limits`, clock here.
"""

import time
from collections.abc import Callable, Collection, Mapping

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import ReadLimits, admit

SizesOf = Callable[[Mapping[SplitId, int], Collection[SplitId]], Mapping[SplitId, float]]
"""Mean bytes of a record per split, given where reading stands, and all splits that are held; asked
only if a limit is in bytes."""


class Admission:
    """Remembers when the last micro-batch with records began. Used by one thread."""

    def __init__(self, sizes_of: SizesOf, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._sizes_of = sizes_of
        self._clock = clock
        self._began = clock()

    def cap(
        self,
        held: Mapping[SplitId, int],
        reachable: Mapping[SplitId, int],
        limits: ReadLimits,
        *,
        may_wait: bool,
    ) -> dict[SplitId, int]:
        """Ends of the next micro-batch.

        Args:
            held: where each split stands.
            reachable: how far it could be read.
            limits: of the source.
            may_wait: whether too few records may wait; not in a query that ends by itself, because
                one that does not move has ended.
        """
        backlog = {s: n if (n := reachable[s] - p) > 0 else 0 for s, p in held.items()}
        now = self._clock()
        sizes = (
            self._sizes_of({s: p for s, p in held.items() if backlog[s]}, held)
            if limits.max_bytes is not None
            else {}
        )
        # A query that ends by itself takes a micro-batch without progress for the end.
        waited = now - self._began if may_wait else limits.max_delay
        shares = admit(backlog, limits, waited=waited, record_bytes=sizes)
        if any(shares.values()):
            self._began = now
        return {s: p + shares[s] for s, p in held.items()}
