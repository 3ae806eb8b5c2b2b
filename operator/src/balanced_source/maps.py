"""Copies of large maps with a few changes, at the price of a copy.

No look at every entry, nothing hashed again.
"""

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_MISSING: Final[Any] = object()


def changed(
    before: Mapping[K, V], *, added: Mapping[K, V] | None = None, dropped: Iterable[K] = ()
) -> dict[K, V]:
    """`before` without the keys in `dropped`, if they are there, and with what is `added`.

    Keys that stay keep their order, so that what was sorted is sorted again quickly.
    """
    after = before.copy() if isinstance(before, dict) else dict(before)
    for key in dropped:
        after.pop(key, None)
    if added:
        after.update(added)
    return after


def different(before: Mapping[K, V], after: Mapping[K, V]) -> Iterator[tuple[K, V]]:
    """Entries of `after` that `before` does not have, or has with another value."""
    known = map(before.get, after, itertools.repeat(_MISSING))
    return itertools.compress(after.items(), map(operator.ne, after.values(), known))


def replaced(before: Mapping[K, V], after: Mapping[K, V]) -> Iterator[tuple[K, V]]:
    """Entries of `after` whose value is not the same object in `before`, equal or not."""
    known = map(before.get, after, itertools.repeat(_MISSING))
    return itertools.compress(after.items(), map(operator.is_not, after.values(), known))
