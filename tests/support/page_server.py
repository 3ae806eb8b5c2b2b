"""A status page for a browser, moved by lines of JSON.

``python -m support.page_server [TOKENFILE]``.

It prints its port. Each line that it reads changes something, and is answered by a line when that
is done.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from balanced_source_operator.page import server
from balanced_source_operator.page.access import ConfiguredToken, Everybody
from balanced_source_operator.page.board import StatusBoard
from balanced_source_operator.page.server import StatusPage, serving
from balanced_source_operator.runtime.audience import SourceMoment
from support.page_scene import put, seen_source, with_state
from testbed.ports import LOOPBACK

HOSTILE: Final = (
    '"><img src="http://evil.example/x"'
    " onerror=\"document.title='broken'\"><script>document.title=1</script>"
)
"""Names and messages come from brokers and from users."""


class _Scene:
    """One source that is read, and one with hostile texts."""

    def __init__(self) -> None:
        self._now = 1_800_000_000.0
        self.board = StatusBoard(lambda: self._now)
        planned = with_state(seen_source())
        self._plan = {"source": planned.source, "checkpoint": planned.checkpoint}
        self.show()
        bad = {"type": "Degraded", "status": "True", "reason": "Unreachable", "message": HOSTILE}
        hostile = seen_source(topic=HOSTILE)
        put(
            self.board,
            replace(hostile, status={**hostile.status, "conditions": [bad], "message": HOSTILE}),
            name="odd",
        )

    def show(self, **source: Any) -> None:
        """Let the source have a turn."""
        put(self.board, self._read(seen_source(**source)))

    def _read(self, seen: SourceMoment) -> SourceMoment:
        """A later report than the one before: each split is further."""
        report = seen.reports["0"]
        passed = int(self._now - 1_800_000_000)
        positions = {
            s: int(str(p)) + passed * (n + 1) * 10
            for n, (s, p) in enumerate(report.positions.items())
        }
        read = replace(report, heartbeat=self._now, positions=positions)
        status = {**seen.status, "lag": 5000 + passed % 700 * 3}
        return replace(seen, reports={"0": read}, status=status, **self._plan)

    def pass_seconds(self) -> None:
        """Let the driver report again."""
        self._now += 10
        self.show()

    def pass_an_hour(self) -> None:
        """Fill the series; for five minutes nothing is known."""
        for number in range(360):
            self._now += 10
            self.show()
            shown = self.board.get(("shop", "orders"))
            if shown is not None and 100 <= number < 130:
                silent = replace(shown.look(), silent=frozenset({"0"}), status={})
                shown.exhibit.sample(silent, self._now)
            else:
                self.board.sample(("shop", "orders"))


async def main(token_file: str = "") -> None:
    """Serve until the input ends."""
    server._PACE = 0.05  # type: ignore[misc]
    scene = _Scene()
    actions: dict[str, Callable[..., None]] = {
        "show": scene.show,
        "hour": scene.pass_an_hour,
        "later": scene.pass_seconds,
    }
    access = ConfiguredToken(Path(token_file)) if token_file else Everybody()
    async with serving(StatusPage(scene.board, access), LOOPBACK, 0) as port:
        print(port, flush=True)  # noqa: T201 - read by the test
        while line := await asyncio.to_thread(sys.stdin.readline):
            command = json.loads(line)
            actions[command.pop("do")](**command)
            print("done", flush=True)  # noqa: T201 - the same


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
