"""Random lives of a second, larger model: sources of all kinds, and a ledger of every record.

The model is `support.lives`. It has fewer rules than the explorer, but sources with and without
retention, Earliest and Latest, topics that are excluded, clusters that go, return and are down, and
lost, restored and rolled back documents.
"""

from typing import Final

from support.lives import live

HOSTS: Final[tuple[tuple[str, ...], ...]] = (("0",), ("0", "1"))
"""Hosts of the source: half of the lives have one, half have two."""


def lived(hosts: tuple[str, ...], first: int, count: int) -> tuple[int, str | None]:
    """Lives so many lives.

    Returns how many, and what went wrong in the last of them, if anything did.
    """
    for done, seed in enumerate(range(first, first + count), start=1):
        try:
            live(seed, hosts)
        except AssertionError as error:
            return done, str(error)
    return count, None
