"""The rules that a walk must not break."""

import enum
from typing import Final


class Rule(enum.StrEnum):
    """What is promised to users, in words that a failure prints."""

    NO_RECORD_TWICE = "each record once"
    NO_RECORD_LOST = "no record lost"
    WANTED_SETTINGS = "wanted settings"
    NOTHING_MOVES = "nothing moves at rest"
    SHORT_GAPS = "no gap longer than a hand-over"
    STANDSTILL_REPORTED = "every standstill is reported"
    NO_ENDLESS_RESTARTS = "no endless restarts"
    NO_INTERNAL_ERROR = "no internal error"
    SAFE_WRITES = "every write is safe"
    NO_EXCEPTION = "no unexpected exception"


ALWAYS: Final = frozenset(
    {
        Rule.NO_RECORD_TWICE,
        Rule.NO_RECORD_LOST,
        Rule.WANTED_SETTINGS,
        Rule.NOTHING_MOVES,
        Rule.NO_INTERNAL_ERROR,
        Rule.SAFE_WRITES,
        Rule.NO_EXCEPTION,
    }
)
"""Rules of every world, unless it says otherwise."""


class BrokenRuleError(Exception):
    """A walk has broken a rule."""

    def __init__(self, rule: Rule, details: str) -> None:
        super().__init__(rule, details)
        self.rule = rule
        self.details = details
