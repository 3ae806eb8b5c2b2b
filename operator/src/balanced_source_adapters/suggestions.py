"""Suggests a name to a user who has misspelt one."""

from collections.abc import Iterable
from typing import Final

_SIMILAR: Final = 0.6
"""Similarity of two names from which one is suggested."""


def nearest(name: str, known: Iterable[str], *, cutoff: float = _SIMILAR) -> str | None:
    """Return the known name that a user may have meant; None if none is similar enough.

    Args:
        name: that the user wrote.
        known: names that would be right.
        cutoff: similarity from which a name is suggested, up to 1.
    """
    import difflib  # for a mistake only: tasks load the modules that use it

    near = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return near[0] if near else None
