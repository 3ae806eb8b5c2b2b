"""Finds the one sentence in what Spark says about a query that has failed."""

import re
from typing import Final

_PREFIXES: Final = (
    re.compile(r"\A(?:\[STREAM_FAILED\] )?Query .*?\[id = [^\]]*\] terminated with exception: "),
    re.compile(r"\A(?:Py4JJavaError: )?An error occurred while calling [^\n]*\n: "),
    re.compile(r"\A(?:[\w.]+: )?Job aborted due to stage failure: .*?\(TID \d+\) \([^)]*\): "),
)
"""What Spark and Py4J put before the reason, outermost first."""

_STATE: Final = re.compile(r"\n=== Streaming Query ===.*", re.DOTALL)
"""The offsets and the plan of the query, behind the reason."""

_SQLSTATE: Final = re.compile(r" SQLSTATE: \w{5}\b")

_TRACEBACK: Final = "Traceback (most recent call last):"

_CODE: Final = re.compile(r"\A[\w.]*\.(?=[A-Z]\w*(?:Error|Exception)\b)")
"""The package of an exception, which says nothing to users."""

_LONGEST: Final = 2000
"""Characters."""


def sentence_of(text: str) -> str:
    """Return why a query has failed: the text of the innermost Python exception, or Spark's own.

    Args:
        text: of the exception. May hold stack traces of Python and Java, offsets and plans.
    """
    reason = _STATE.sub("", text.strip())
    for prefix in _PREFIXES:
        reason = prefix.sub("", reason)
    _, _, raised = reason.rpartition(_TRACEBACK)
    # A trace may be cut off behind its heading.
    first = _first_line(raised) or _first_line(reason)
    return _SQLSTATE.sub("", _CODE.sub("", first)).strip(" ;")[:_LONGEST]


def _first_line(text: str) -> str:
    """Return the first line that does not belong to a frame of Python or Java; both indent frames.

    What follows are further parts of a trace, or Spark's plan.
    """
    lines = (line for line in text.splitlines() if line[:1] not in (" ", "\t"))
    return next((line.strip() for line in lines if line.strip()), "")
