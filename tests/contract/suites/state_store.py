"""What every place for the enumerator state must do: compare and swap, loudly."""

from typing import Protocol

import pytest

from balanced_source.errors import StateConflictError


class StateStore(Protocol):
    """One process's way to one stored document."""

    async def read(self) -> str | None:
        """What is stored; None if nothing is."""
        ...

    async def swap(self, text: str) -> None:
        """Store, if nothing was stored since this process looked last.

        Raises:
            StateConflictError: something was.
        """
        ...


class OpenStore(Protocol):
    """Opens the one store of a test for one more process."""

    def __call__(self) -> StateStore: ...


class StateStoreContract:
    """Derive, provide the fixture ``open_store`` (an `OpenStore`), and name the class ``Test…``."""

    async def test_nothing_is_stored_at_first(self, open_store: OpenStore) -> None:
        assert await open_store().read() is None

    async def test_what_one_stores_others_read(self, open_store: OpenStore) -> None:
        mine = open_store()
        await mine.swap("one")
        await mine.swap("two, with ünïcode and\nlines")

        assert await open_store().read() == "two, with ünïcode and\nlines"
        assert await mine.read() == "two, with ünïcode and\nlines"

    async def test_the_second_of_two_who_read_the_same_loses(self, open_store: OpenStore) -> None:
        await open_store().swap("before")
        first, second = open_store(), open_store()
        await first.read()
        await second.read()
        await first.swap("first")

        with pytest.raises(StateConflictError):
            await second.swap("second")

        assert await open_store().read() == "first"

    async def test_who_has_not_looked_overwrites_nothing(self, open_store: OpenStore) -> None:
        await open_store().swap("there")

        with pytest.raises(StateConflictError):
            await open_store().swap("blind")

        assert await open_store().read() == "there"

    async def test_two_who_begin_at_once(self, open_store: OpenStore) -> None:
        first, second = open_store(), open_store()
        assert (await first.read(), await second.read()) == (None, None)
        await first.swap("first")

        with pytest.raises(StateConflictError):
            await second.swap("second")

    async def test_after_a_conflict_one_reads_again_and_goes_on(
        self, open_store: OpenStore
    ) -> None:
        first, second = open_store(), open_store()
        await first.swap("first")
        with pytest.raises(StateConflictError):
            await second.swap("second")

        assert await second.read() == "first"
        await second.swap("second")

        assert await first.read() == "second"

    async def test_the_same_text_again_is_no_conflict(self, open_store: OpenStore) -> None:
        mine = open_store()
        for _ in range(3):
            await mine.swap("same")

        assert await open_store().read() == "same"

    async def test_large_documents(self, open_store: OpenStore) -> None:
        large = ",".join(map(str, range(60_000)))
        mine = open_store()
        await mine.swap(large)
        await mine.swap("small")
        await mine.swap(large)

        assert await open_store().read() == large
