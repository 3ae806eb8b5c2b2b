"""Progress: one line per step with its seconds; a spinner on a terminal, plain lines in a log."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


class Progress:
    """Tells what the testbed is doing.

    Attributes:
        seconds: name of each finished step and how long it took.
    """

    def __init__(self, console: Console | None = None, *, quiet: bool = False) -> None:
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self._quiet = quiet
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Run the body as one step; a failing step is told too, and its exception continues."""
        started = time.monotonic()
        outcome = "failed"
        try:
            with self._spinner(name):
                yield
            outcome = "done"
        finally:
            self.seconds[name] = time.monotonic() - started
            self.line(f"{name}: {outcome} in {self.seconds[name]:.1f} s")

    def line(self, text: str) -> None:
        """Print one line, markup untouched."""
        if not self._quiet:
            self._console.print(text, markup=False)

    @contextmanager
    def _spinner(self, name: str) -> Iterator[None]:
        if self._quiet or not self._console.is_terminal:
            self.line(f"{name} …")
            yield
            return
        with self._console.status(f"{name} …"):
            yield


QUIET = Progress(quiet=True)
"""For callers that want no lines, such as tests."""
