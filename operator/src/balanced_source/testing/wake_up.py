"""How every `SplitReader` must react to `wake_up`.

`SplitReaderContract` contains this suite. Derive this one alone for a reader whose splits never
end, also in tests.
"""

import threading
from collections.abc import Callable
from typing import Any, Self

import pytest

from balanced_source.api import SourceSplit, SplitReader, SplitsAddition

DEADLINE = 20.0
"""Seconds until a fetch that should have returned fails the test."""

ROUNDS = 100
"""Fetches that must return within the deadline; a reader that waits in each of them does not."""


class WakeUpContract:
    """Derive, implement the hooks, and name the class ``Test…``.

    Attributes:
        may_block: whether `fetch` can wait for anything. Set it to False if all that the reader
            reads is there, as in files.
    """

    may_block: bool = True

    def make_reader(self) -> SplitReader[Any, Any]:
        """A fresh reader."""
        raise NotImplementedError

    def unread(self) -> SourceSplit | None:
        """A split for which `fetch` waits, because nothing is there yet; for `may_block`."""
        return None

    def test_a_fetch_that_blocks_is_woken_up(self) -> None:
        reader = self._waiting()

        with _Background(lambda: _fetch_nothing(reader)) as fetching:
            fetching.done.wait(0.05)  # let it begin to wait, if it does
            reader.wake_up()
            fetching.must_end("wake_up did not end a fetch that waits")
        reader.close()

    def test_a_wake_up_before_the_fetch_is_not_lost(self) -> None:
        """Again and again, because a reader that waits for a short time also ends by itself."""
        reader = self._waiting()

        def woken() -> None:
            for _ in range(ROUNDS):
                reader.wake_up()
                _fetch_nothing(reader)

        with _Background(woken) as fetching:
            fetching.must_end(
                f"{ROUNDS} fetches took too long, although wake_up was called before each: it must"
                " end a fetch that waits, or the next one if none does"
            )
        reader.close()

    def test_a_reader_that_never_blocks_does_not_wait(self) -> None:
        if self.may_block:
            pytest.skip("this reader may block: the tests of wake_up are for it")
        reader = self.make_reader()

        def empty() -> None:
            for _ in range(ROUNDS):
                reader.fetch()

        with _Background(empty) as fetching:
            fetching.must_end(
                f"{ROUNDS} fetches without anything to read took too long, although may_block is"
                " False: set it to True, and return from unread a split for which fetch waits"
            )
        reader.close()

    def _waiting(self) -> SplitReader[Any, Any]:
        """A reader with a split for which it waits."""
        if not self.may_block:
            pytest.skip("may_block is False: this reader never waits")
        split = self.unread()
        assert split is not None, (
            "return from unread a split for which fetch waits, or set may_block = False if fetch"
            " never waits"
        )
        reader = self.make_reader()
        reader.handle_splits_changes(SplitsAddition((split,)))
        return reader


def _fetch_nothing(reader: SplitReader[Any, Any]) -> None:
    records = reader.fetch()
    assert records.next_split() is None, "fetch must wait for the split of unread: it has records"
    records.recycle()


class _Background:
    """A call in another thread, which does not keep the tests from ending.

    Attributes:
        done: set when the call has returned or raised.
    """

    def __init__(self, call: Callable[[], object]) -> None:
        self.done = threading.Event()
        self._call = call
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        threading.Thread(target=self._run, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """The thread of a failed test is left behind."""

    def must_end(self, otherwise: str) -> None:
        """Wait until the call has returned.

        Raises:
            AssertionError: it did not within the deadline, for the reason `otherwise`.
        """
        assert self.done.wait(DEADLINE), otherwise
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as error:  # noqa: BLE001 - raised in the test
            self._error = error
        finally:
            self.done.set()
