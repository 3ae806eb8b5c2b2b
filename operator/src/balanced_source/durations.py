"""Spans of time as users write them, in the custom resource and in options alike."""

import re
from typing import Final

PATTERN: Final = r"^(0|([0-9]+(ms|s|m|h))+)$"
"""``500ms``, ``5m``, ``1h30m``, or ``0``; in the dialect that the API server knows too."""

_PART: Final = re.compile(r"([0-9]+)(ms|s|m|h)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def is_duration(text: str) -> bool:
    """Whether `seconds` can be asked."""
    return re.fullmatch(PATTERN, text) is not None


def seconds(duration: str) -> float:
    """A duration in seconds; 0.0 for ``0``. Text that is no duration must not come here."""
    return sum(int(number) * _SECONDS[unit] for number, unit in _PART.findall(duration))
