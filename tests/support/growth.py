"""How much the containers of some objects hold, to see which of them only grow."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from operator import and_, or_
from typing import Any, Final

PACKAGES: Final = ("balanced_source", "pyspark_balanced")
"""Beginnings of the modules whose objects are looked into."""

WEEKS: Final = 5
SLACK: Final = 10
"""Elements that a container may hold more in the last week: fewer than days are between them."""

_CONTAINERS: Final = (Mapping, list, tuple, set, frozenset, deque)


def sizes(root: object, *, without: Iterable[type] = ()) -> Counter[str]:
    """Returns the number of elements in all containers below an object, by ``Class.attribute``.

    Args:
        root: where to begin.
        without: classes whose objects are not looked into.
    """
    found: Counter[str] = Counter()
    seen: set[tuple[str, int]] = set()
    left = list(_attributes(root))
    while left:
        place, value = left.pop()
        # What several hold counts for each of them, or the sums would be a matter of luck.
        if (place, id(value)) in seen or isinstance(value, tuple(without)):
            continue
        seen.add((place, id(value)))
        if isinstance(value, deque) and value.maxlen is not None:
            continue  # it is bounded
        if isinstance(value, _CONTAINERS):
            found[place] += len(value)
            left += ((place, inner) for inner in _inner(value))
        elif type(value).__module__.startswith(PACKAGES):
            left += _attributes(value)
    return found


def growing(look: Callable[[], Counter[str]], day: Callable[[], None]) -> list[str]:
    """Returns the containers that hold more after many days, each of which leaves nothing behind.

    What is forgotten only now and then holds more on some days than on others. So the least of the
    last week is compared with the most of the first one, when all that exists was there once.

    Args:
        look: see `sizes`.
        day: lets one pass.
    """
    days: list[Counter[str]] = []
    for _ in range(7 * WEEKS):
        day()
        days.append(look())
    most = reduce(or_, days[7:14])
    least = reduce(and_, days[-7:])
    return [f"{at}: {most[at]} → {n}" for at, n in sorted(least.items()) if n > most[at] + SLACK]


def _attributes(value: object) -> Iterator[tuple[str, Any]]:
    names = [*getattr(value, "__dict__", ()), *_slots(type(value))]
    for name in names:
        if hasattr(value, name) and not name.startswith("__"):
            yield f"{type(value).__name__}.{name}", getattr(value, name)


def _slots(kind: type) -> Iterator[str]:
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots


def _inner(value: Any) -> Iterable[Any]:
    # A copy: other threads may change what is looked at.
    if isinstance(value, Mapping):
        return [part for item in list(value.items()) for part in item]
    return list(value)
