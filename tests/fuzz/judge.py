"""What an input may end in."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from balanced_source.errors import BalancedSourceError, ContractViolationError

SHORTEST = 20
LONGEST = 4000
"""Characters of a sentence."""


class FindingError(AssertionError):
    """An input ended in something else than a result or a sentence."""


class TracebackError(FindingError):
    """An exception that no one meant to raise."""


class SilentError(FindingError):
    """A refusal without a sentence, or a failure without any."""


@dataclass
class Judge:
    """Counts inputs, and lets no exception pass that is no sentence."""

    inputs: int = 0
    refused: int = 0
    tracebacks: int = 0
    silent: int = 0
    findings: list[str] = field(default_factory=list)

    def try_(self, work: Callable[[], Any], given: Any) -> Any:
        """Returns the result of the work; None if it was refused in words.

        Raises:
            FindingError: it ended otherwise.
        """
        try:
            return work()
        except ContractViolationError as error:
            raise TracebackError(f"{error!r} for {shortened(given)}") from error
        except BalancedSourceError as error:
            self.refused += 1
            check_sentence(str(error), given)
        except FindingError:
            raise
        except Exception as error:
            raise TracebackError(
                f"{type(error).__name__}: {error} for {shortened(given)}"
            ) from error
        return None


def check_sentence(text: str, given: Any) -> None:
    """Raises `SilentError` unless a person can read the text."""
    if not SHORTEST <= len(text) <= LONGEST or not text.isprintable() or " " not in text:
        raise SilentError(f"{text[:200]!r} is no sentence, for {shortened(given)}")


def shortened(given: Any) -> str:
    """Returns an input as a report can show it."""
    try:
        text = given if isinstance(given, str) else json.dumps(given, default=repr)
    except (ValueError, RecursionError):
        text = "an input that JSON cannot hold"
    return text if len(text) < 3000 else f"{text[:3000]}…"
