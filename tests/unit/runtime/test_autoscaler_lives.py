"""Lives of an autoscaler, once with a turn for each report and once with those that it asks for.

Both decide and say the same at every moment: what it does not look at would have changed nothing.
"""

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.documents.report import HostReport
from balanced_source_operator.controller.liveness import ALIVE, ReportNews, news_of
from balanced_source_operator.runtime import autoscaler as module
from balanced_source_operator.runtime.autoscaler import Autoscaler
from balanced_source_operator.runtime.environment import Desired
from support import virtual_time
from support.builders import identity, make_spec, source_of

SPLITS = 8
"""Of each host."""

Said = tuple[Any, ...]


class Life:
    """Hosts that report, a user, and the autoscaler between them; all chosen by a seed.

    Attributes:
        said: after each thing that has happened: when, what, and what the autoscaler says.
        turns: how many there were.
    """

    def __init__(self, seed: int, *, is_eager: bool) -> None:
        self._chance = random.Random(seed)
        self._is_eager = is_eager
        self._hosts = [str(number) for number in range(self._chance.choice([1, 1, 2, 3]))]
        self._readers = self._fewest = 2 * len(self._hosts)
        self._most = 24
        self._reports: dict[str, HostReport | None] = dict.fromkeys(self._hosts)
        self._sequence, self._ahead = 0, dict.fromkeys(self._hosts, 0.0)
        self._due = {host: 3.1 * number for number, host in enumerate(self._hosts)}
        self._heard_at: dict[str, float] = {}
        self._known: dict[tuple[int, int, int], Desired] = {}
        capacity = self._chance.choice([None, 100.0, 1000.0])
        api: Any = self
        self._autoscaler = Autoscaler(api, identity(), api, capacity=capacity)
        self._asked: list[Said] = []
        self.said: list[Said] = []
        self.turns = 0

    async def live(self) -> None:
        for host in self._hosts:
            await self._report(host)
        for _ in range(self._chance.randint(2, 6)):
            await self._pass(self._chance.randint(1, 400))
            happens = self._chance.choice(_EVENTS)
            await happens(self, self._chance.choice(self._hosts))
        await self._pass(100)

    # What the autoscaler asks for ----------------------------------------------------------

    async def scale(self, *_: Any, before: int, after: int) -> None:
        self._asked.append((before, after))
        self._readers = after

    async def post(self, reason: str, message: str, *, warning: bool) -> None:
        assert message
        self._asked.append((reason, warning))

    # What it sees --------------------------------------------------------------------------

    @property
    def _desired(self) -> Desired:
        key = self._readers, self._fewest, self._most
        if key not in self._known:
            bounds = {"minReaders": key[1], "maxReaders": key[2], "scaleDownDelay": "2m"}
            spec = make_spec(parallelism=key[0], autoscaling=bounds)
            self._known[key] = Desired(spec=spec, source=source_of(spec, None))
        return self._known[key]

    async def _turn(self, what: str, *, is_held: bool = False) -> None:
        self.turns += 1
        await self._autoscaler.turn(self._desired, dict(self._reports), is_held=is_held)
        self._note(what)

    def _note(self, what: str) -> None:
        verdict, seen = self._autoscaler.verdict, None
        if verdict is not None:
            figures = verdict.arrival, verdict.utilization, verdict.capacity
            seen = verdict.readers, str(verdict.reason), *figures
        self.said.append((_now(), what, seen, tuple(self._asked)))

    async def _report(self, host: str, *, read: int = 0, **changes: Any) -> None:
        before, now = self._reports[host] or self._first(host), _now()
        self._sequence += 1
        self._due[host] = now + 10.05
        positions = {split: int(at or 0) + read for split, at in before.positions.items()}
        after = replace(
            before,
            **{
                "sequence": self._sequence,
                "heartbeat": virtual_time.clock() + self._ahead[host],
                "positions": positions,
                **changes,
            },
        )
        news = news_of(self._reports[host], after)
        was_silent = now - self._heard_at.get(host, now) >= ALIVE
        self._reports[host], self._heard_at[host] = after, now
        is_heartbeat = news is ReportNews.HEARTBEAT and not was_silent and not self._is_eager
        if is_heartbeat and self._autoscaler.heard(self._desired.source, host, after):
            self._note(f"heard {host}")
        else:
            await self._turn(f"heard {host}")

    def _first(self, host: str) -> HostReport:
        splits = [("s", f"{host}-{number}") for number in range(SPLITS)]
        owners = {split: 2 * int(host) + number % 2 for number, split in enumerate(splits)}
        return HostReport(
            host=host,
            incarnation=1,
            sequence=0,
            parallelism=self._readers,
            heartbeat=0.0,
            lag=0,
            positions=dict.fromkeys(splits, 0),
            owners=owners,
        )

    async def _pass(self, seconds: float) -> None:
        """Hosts beat, and one that has fallen silent causes a turn."""
        end, told = _now() + seconds, set[str]()
        while True:
            ends = [(self._heard_at[h] + ALIVE, 1, h) for h in self._hosts if h not in told]
            at, is_end, host = min([(self._due[h], 0, h) for h in self._hosts] + ends)
            if at > end:
                break
            await asyncio.sleep(max(0.0, at - _now()))
            if is_end:
                told.add(host)
                await self._turn(f"silent {host}")
            else:
                told.discard(host)
                await self._report(host)
        await asyncio.sleep(max(0.0, end - _now()))

    # What happens --------------------------------------------------------------------------

    async def load(self, _: str) -> None:
        rate, unread = self._chance.randint(0, 3000), self._chance.choice([0, 0, 500, 100_000])
        for second in range(self._chance.choice([1, 2, self._chance.randint(3, 30)])):
            for host in self._hosts:
                lag = unread * (second + 1)
                await self._report(host, read=rate, lag=lag, parallelism=self._readers)
            await asyncio.sleep(2)
        for host in self._hosts:
            await self._report(host, read=rate, lag=0, parallelism=self._readers)

    async def trickle(self, host: str) -> None:
        for _ in range(self._chance.randint(1, 4)):
            await self._report(host, read=1)
            await self._pass(self._chance.randint(5, 120))

    async def lag_unknown(self, host: str) -> None:
        await self._report(host, lag=None)
        await self._pass(self._chance.randint(1, 120))
        await self._report(host, lag=0, read=self._chance.choice([0, 100]))

    async def new_driver(self, host: str) -> None:
        before = self._reports[host]
        assert before is not None
        lag = self._chance.choice([None, 0])
        await self._report(host, incarnation=before.incarnation + 1, lag=lag)
        await self._pass(self._chance.randint(1, 60))
        await self._report(host, lag=0)

    async def clock_jumps(self, host: str) -> None:
        self._ahead[host] += self._chance.choice([-3600, -15, 15, 25, 3600])

    async def silence(self, host: str) -> None:
        self._due[host] = _now() + self._chance.randint(20, 200)

    async def bounds(self, _: str) -> None:
        self._fewest = self._chance.choice([1, 2, 4, 8])
        self._most = self._chance.choice([8, 24])
        await self._turn("bounds")

    async def user(self, _: str) -> None:
        self._readers = self._chance.choice([1, 4, 8, 30])
        await self._turn("user")

    async def pause(self, _: str) -> None:
        await self._turn("paused", is_held=True)
        await asyncio.sleep(1)
        await self._turn("resumed")


_EVENTS = (
    Life.load,
    Life.load,
    Life.trickle,
    Life.lag_unknown,
    Life.new_driver,
    Life.clock_jumps,
    Life.silence,
    Life.bounds,
    Life.user,
    Life.pause,
)


def _now() -> float:
    return virtual_time.clock() - virtual_time.EPOCH


def lived(seed: int, **chosen: Any) -> Life:
    life = Life(seed, **chosen)
    virtual_time.run(life.live())
    return life


def difference(seed: int) -> tuple[Said, Said] | None:
    """Return the first thing that both lives of a seed do not have in common."""
    eager, lazy = lived(seed, is_eager=True), lived(seed, is_eager=False)
    assert lazy.turns <= eager.turns
    pairs = zip(eager.said, lazy.said, strict=True)
    return next(((one, other) for one, other in pairs if one != other), None)


@pytest.mark.parametrize("splits_per_second", [10_000, 2.0, 0.9])
@pytest.mark.parametrize("seeds", [range(35), range(35, 70)], ids=["first", "second"])
def test_what_needs_no_turn_would_have_changed_nothing(
    monkeypatch: pytest.MonkeyPatch, seeds: range, splits_per_second: float
) -> None:
    # Few splits are sampled at each report, many at most every few seconds.
    monkeypatch.setattr(module, "SPLITS_PER_SECOND", splits_per_second)
    assert {seed: found for seed in seeds if (found := difference(seed)) is not None} == {}
