"""Spans of time as users write them, in the custom resource and in options alike."""

import re
from typing import Final

PATTERN: Final = r"^(0|([0-9]{1,9}(ms|s|m|h))+)$"
"""``500ms``, ``5m``, ``1h30m``, or ``0``; in the dialect that the API server knows too."""

LONGEST: Final = 87_600 * 3600.0
"""Seconds: ten years. Timers and deadlines further away overflow in one library or another."""

_PART: Final = re.compile(r"([0-9]+)(ms|s|m|h)")
_WHOLE: Final = re.compile(PATTERN[:-1] + r"\Z")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def is_duration(text: str) -> bool:
    """Returns whether `seconds` can be asked; a duration has at most ten years."""
    return _WHOLE.match(text) is not None and seconds(text) <= LONGEST


def seconds(duration: str) -> float:
    """A duration in seconds; 0.0 for ``0``. Text that is no duration must not come here."""
    return sum(int(number) * _SECONDS[unit] for number, unit in _PART.findall(duration))
