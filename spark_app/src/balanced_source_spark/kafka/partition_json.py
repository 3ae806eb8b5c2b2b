"""Reads numbers out of the JSON of options: nothing that only looks like a number counts as one."""

from typing import Any


def whole(value: Any) -> int:
    """Return a whole number, also one that is written as text.

    Raises:
        ValueError: it is none: `23.5`, `true`.
    """
    if isinstance(value, bool | float):
        raise ValueError(f"{value!r} is not a whole number")  # noqa: TRY004 - of the user
    return int(value)


def partitions_of(listed: Any) -> list[int]:
    """Return the numbers of partitions in a list.

    Raises:
        ValueError: it is no list, or holds something else.
    """
    if not isinstance(listed, list):
        raise ValueError(f"{listed!r} is not a list")  # noqa: TRY004 - of the user
    return [whole(number) for number in listed]
