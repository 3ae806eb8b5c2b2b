"""Threads for calls to servers, shared by all sources; silent clusters delay only themselves.

Calls of one lane (one cluster of one source) run one after another, in a thread of their own. A
prompt lane needs one of `PROMPT` places. A call that takes longer than `SLOW_AFTER` gives its place
up and continues; until the lane answers in time again, its calls use the places for slow lanes. So
a lane that does not answer holds up others for at most `SLOW_AFTER`, once: after that, slow lanes
wait for slow lanes only.

Many lanes may lead to one server. What one of them learns of it holds for all: a server that has
fallen silent takes at most `PROMPT` places once, however many sources are read from it.
"""

import asyncio
import contextlib
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from balanced_source.errors import contained

PROMPT: Final = 32
"""Calls that run at the same time, of lanes that answer in time."""

SLOW: Final = 128
"""Calls that run at the same time, of lanes that do not."""

SLOW_AFTER: Final = 1.0
"""Seconds after which a call gives up its place among the prompt ones."""


Lane: TypeAlias = tuple[Hashable, Hashable]
"""Owner (a source) and scope (a cluster)."""


class CallPool(Protocol):
    """Executes blocking calls off the event loop."""

    async def run(
        self, lane: Lane, function: Callable[[Any], Any], call: Any, *, server: str = ""
    ) -> Any:
        """Return ``function(call)``, or raise what it raises. Calls of one lane keep their order.

        Args:
            lane: in which the call waits for its turn.
            function: blocks until it has an answer.
            call: its argument.
            server: address of the server that is asked; empty if it is unknown.
        """
        ...

    def forget(self, owner: Hashable) -> None:
        """Forget which lanes ``(owner, …)`` were slow: their source is not served any more."""
        ...


@dataclass(slots=True)
class _Call:
    execute: Callable[[], Any]
    server: str
    done: "Future[Any]" = field(default_factory=Future)


@dataclass(slots=True)
class _Lane:
    waiting: deque[_Call] = field(default_factory=deque)
    is_running: bool = False
    is_slow: bool = False
    is_forgotten: bool = False


class LanePool:
    """See the module and `CallPool`. Used on one event loop.

    Args:
        prompt: see `PROMPT`.
        slow: see `SLOW`.
        slow_after: see `SLOW_AFTER`.
    """

    def __init__(
        self, *, prompt: int = PROMPT, slow: int = SLOW, slow_after: float = SLOW_AFTER
    ) -> None:
        self._free = {False: prompt, True: slow}
        self._slow_after = slow_after
        self._lanes: OrderedDict[Lane, _Lane] = OrderedDict()
        self._slow_servers: set[str] = set()

    async def run(
        self, lane: Lane, function: Callable[[Any], Any], call: Any, *, server: str = ""
    ) -> Any:
        """See `CallPool`."""
        waiting = _Call(lambda: function(call), server)
        found = self._lanes.setdefault(lane, _Lane())
        # The same owner comes back when its coordinator was dropped and is loaded again.
        found.is_forgotten = False
        found.waiting.append(waiting)
        self._dispatch()
        return await asyncio.wrap_future(waiting.done)

    def _dispatch(self) -> None:
        """Start what has a place; the lane that has waited longest comes first."""
        for name, lane in list(self._lanes.items()):
            while lane.waiting and not lane.is_running and self._free[self._will_be_slow(lane)] > 0:
                lane.is_slow = self._will_be_slow(lane)
                call = lane.waiting.popleft()
                # A coordinator that was dropped meanwhile has cancelled what it waited for.
                if call.done.set_running_or_notify_cancel():
                    # Behind all others: a busy lane must not take every place that becomes free.
                    self._lanes.move_to_end(name)
                    self._start(name, lane, call)

    def _will_be_slow(self, lane: _Lane) -> bool:
        return lane.is_slow or lane.waiting[0].server in self._slow_servers

    def _start(self, name: Lane, lane: _Lane, call: _Call) -> None:
        loop = asyncio.get_running_loop()
        lane.is_running = True
        self._free[lane.is_slow] -= 1
        timer = (
            None
            if lane.is_slow
            else loop.call_later(self._slow_after, self._give_up_place, lane, call.server)
        )
        begun = loop.time()

        def ended() -> None:
            if timer is not None:
                timer.cancel()
            self._end(name, lane, call.server, took=loop.time() - begun)

        def work() -> None:
            _execute(call)
            with contextlib.suppress(RuntimeError):  # the loop is closed: no one waits any more
                loop.call_soon_threadsafe(ended)

        # Daemon: a process that ends does not wait for a server.
        threading.Thread(target=work, name=f"call {name}", daemon=True).start()

    def _give_up_place(self, lane: _Lane, server: str) -> None:
        lane.is_slow = True
        # An unknown server says nothing about other lanes.
        self._slow_servers |= {server} - {""}
        self._free[False] += 1
        self._free[True] -= 1  # below zero if all are taken: it runs already
        self._dispatch()

    def _end(self, name: Lane, lane: _Lane, server: str, *, took: float) -> None:
        self._free[lane.is_slow] += 1
        lane.is_running, lane.is_slow = False, took >= self._slow_after
        if not lane.is_slow:
            # One prompt answer is enough: lanes of this server need not use the slow places any
            # more.
            self._slow_servers.discard(server)
        self._drop_idle(name, lane)
        self._dispatch()

    def forget(self, owner: Hashable) -> None:
        """See `CallPool`."""
        for name, lane in list(self._lanes.items()):
            if name[0] == owner:
                lane.is_forgotten = True
                self._drop_idle(name, lane)

    def _drop_idle(self, name: Lane, lane: _Lane) -> None:
        """A lane is remembered while it has something to do, or to remember that it is slow."""
        if not (lane.is_running or lane.waiting) and (lane.is_forgotten or not lane.is_slow):
            self._lanes.pop(name, None)


def _execute(call: _Call) -> None:
    try:
        result = call.execute()
    except BaseException as error:  # noqa: BLE001
        # Whoever waits for the call decides what it means
        call.done.set_exception(contained(error))
    else:
        call.done.set_result(result)
