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

    async def test_a_stored_document_is_read_by_other_processes(
        self, open_store: OpenStore
    ) -> None:
        mine = open_store()
        await mine.swap("one")
        await mine.swap("two, with ünïcode and\nlines")

        assert await open_store().read() == "two, with ünïcode and\nlines"
        assert await mine.read() == "two, with ünïcode and\nlines"

    async def test_the_second_of_two_writers_from_the_same_version_loses(
        self, open_store: OpenStore
    ) -> None:
        await open_store().swap("before")
        first, second = open_store(), open_store()
        await first.read()
        await second.read()
        await first.swap("first")

        with pytest.raises(StateConflictError):
            await second.swap("second")

        assert await open_store().read() == "first"

    async def test_a_writer_that_has_not_read_overwrites_nothing(
        self, open_store: OpenStore
    ) -> None:
        await open_store().swap("there")

        with pytest.raises(StateConflictError):
            await open_store().swap("blind")

        assert await open_store().read() == "there"

    async def test_two_instances_that_start_together(self, open_store: OpenStore) -> None:
        first, second = open_store(), open_store()
        assert (await first.read(), await second.read()) == (None, None)
        await first.swap("first")

        with pytest.raises(StateConflictError):
            await second.swap("second")

    async def test_after_a_conflict_the_writer_reads_again_and_continues(
        self, open_store: OpenStore
    ) -> None:
        first, second = open_store(), open_store()
        await first.swap("first")
        with pytest.raises(StateConflictError):
            await second.swap("second")

        assert await second.read() == "first"
        await second.swap("second")

        assert await first.read() == "second"

    async def test_the_same_text_again_is_not_a_conflict(self, open_store: OpenStore) -> None:
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
