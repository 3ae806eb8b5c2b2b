"""An autoscaler in memory, what drivers report to it, and what it asks of others."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from balanced_source.api import Source
from balanced_source.documents.report import HostReport
from balanced_source_operator.runtime.autoscaler import Autoscaler
from balanced_source_operator.runtime.environment import Desired
from balanced_source_operator.spec import BalancedSourceSpec
from support import virtual_time
from support.builders import identity, make_spec, source_of

BOUNDS: Final = {"minReaders": 2, "maxReaders": 8}


class Scene:
    """A source with eight splits, its autoscaler, and what that asks of others.

    Attributes:
        scaled: numbers of readers, before and after.
        posted: reasons of events, and whether they are warnings.
        error: raised by the API server instead of a change.
        source: what is read; topics of Kafka if None.
    """

    def __init__(
        self, source: Source[Any, Any] | None = None, *, capacity: float | None = None
    ) -> None:
        self.source = source
        self.scaled: list[tuple[int, int]] = []
        self.posted: list[tuple[str, bool]] = []
        self.error: Exception | None = None
        self._position, self._sequence = 0, 0
        self._specs: dict[str, BalancedSourceSpec] = {}
        self._reports: dict[str, HostReport | None] = {"0": None}
        api: Any = self
        self.autoscaler = Autoscaler(api, identity(), api, capacity=capacity)

    async def scale(self, *_: Any, before: int, after: int) -> None:
        if self.error is not None:
            raise self.error
        self.scaled.append((before, after))

    async def post(self, reason: str, message: str, *, warning: bool) -> None:
        assert message
        self.posted.append((reason, warning))

    def report(self, *, lag: int | None, rate: int = 100, skipped: int = 0) -> None:
        """Each split was read for a second, at this rate; so many offsets were skipped so far."""
        self._position += rate
        self._sequence += 1
        splits = [("s", str(number)) for number in range(8)]
        self._reports["0"] = HostReport(
            incarnation=1,
            sequence=self._sequence,
            parallelism=2,
            heartbeat=virtual_time.clock(),
            lag=lag,
            metrics={"skippedOffsets": skipped} if skipped else {},
            positions=dict.fromkeys(splits, self._position),
            owners={split: number % 2 for number, split in enumerate(splits)},
        )

    async def turn(
        self,
        parallelism: int = 2,
        *,
        bounds: Mapping[str, int] | None = BOUNDS,
        is_held: bool = False,
        **changes: Any,
    ) -> str:
        """Take a turn; return the reason of the decision."""
        asked = {} if bounds is None else {"autoscaling": bounds}
        spec = self._spec({"parallelism": parallelism, **asked, **changes})
        desired = Desired(spec=spec, source=self.source or source_of(spec, None))
        await self.autoscaler.turn(desired, self._reports, is_held=is_held)
        return self.reason

    def _spec(self, changes: Mapping[str, Any]) -> BalancedSourceSpec:
        """To parse a spec takes longer than a turn."""
        text = json.dumps(changes, sort_keys=True)
        if text not in self._specs:
            self._specs[text] = make_spec(**changes)
        return self._specs[text]

    @property
    def reason(self) -> str:
        verdict = self.autoscaler.verdict
        return "" if verdict is None else str(verdict.reason)

    def beat(self) -> None:
        """The driver says only that it lives."""
        before = self._reports["0"]
        assert before is not None
        self._sequence += 1
        now = virtual_time.clock()
        self._reports["0"] = replace(before, sequence=self._sequence, heartbeat=now)

    def needs_turn(self) -> bool:
        """Return whether the newest report, which says nothing new, needs a turn."""
        report = self._reports["0"]
        assert report is not None
        source = self.source or source_of(make_spec(), None)
        return not self.autoscaler.heard(source, "0", report)

    async def read(self, seconds: int, *, lag: int = 0) -> None:
        """The driver reports each second."""
        for _ in range(seconds):
            await asyncio.sleep(1)
            self.report(lag=lag)
            await self.turn()
