"""A listing of objects ends behind the names with which a pattern begins."""

from collections.abc import Iterator

import pytest

from balanced_source.connectors.files import File
from balanced_source_adapters.files.file_store import narrowed

NAMES = ["b/a", "b/in-1", "b/in-2", "b/in-2/x", "b/in-20", "b/in-3", "b/in-30", "b/z"]


class Server:
    """Lists objects, and counts those that it has sent.

    Args:
        names: in the order in which it lists them.
        takes_start: whether it leaves out what a listing starts behind.
    """

    def __init__(self, names: list[str], *, takes_start: bool = True) -> None:
        self._names, self._takes_start = names, takes_start
        self.sent: list[str] = []

    def listed(self, after: str) -> Iterator[File]:
        for name in self._names:
            if name > after or not self._takes_start:
                self.sent.append(name)
                yield File(1, name, 1)

    def stat(self, path: str) -> File | None:
        return File(1, path, 1) if path in self._names else None

    def below(self, begins: str, *, after: str = "", is_ordered: bool = True) -> list[str]:
        found = narrowed(self.listed, self.stat, after=after, begins=begins, is_ordered=is_ordered)
        return [file.path for file in found]


def test_objects_of_other_names_are_not_listed() -> None:
    server = Server(NAMES)

    assert server.below("b/in-2") == ["b/in-2", "b/in-2/x", "b/in-20"]
    assert server.sent == ["b/in-2/x", "b/in-20", "b/in-3"], "one more tells that this is the end"
    assert server.below("b/in-4") == []
    assert server.below("") == NAMES


@pytest.mark.parametrize("after", ["", "b/a", "b/in-2", "b/in-2/x", "b/in-20", "b/z"])
@pytest.mark.parametrize("begins", ["", "b/", "b/in-2", "b/in-3", "b/nothing"])
@pytest.mark.parametrize(
    "server",
    [
        Server(NAMES),
        Server(NAMES, takes_start=False),
        Server([*NAMES[5:], *NAMES[:5]]),
        Server(NAMES[::-1], takes_start=False),
    ],
    ids=["ordered", "from-the-beginning", "turned", "backwards"],
)
def test_no_object_is_missed_or_comes_twice(server: Server, begins: str, after: str) -> None:
    """Some servers ignore the start. Some know no order, such as directory buckets of S3."""
    is_ordered = next(server.listed("")).path == "b/a"

    found = server.below(begins, after=after, is_ordered=is_ordered)

    assert sorted(found) == [name for name in NAMES if name.startswith(begins) and name > after]


def test_a_listing_without_the_order_that_was_expected_is_read_to_its_end() -> None:
    server = Server(["b/in-20", "b/in-1", "b/z", "b/in-2/x"], takes_start=False)

    assert server.below("b/in-2") == ["b/in-20", "b/in-2/x"]
