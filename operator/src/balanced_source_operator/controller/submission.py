"""What a failed submission is about, in the output of spark-submit.

Kubeflow's operator reports all of it: the log of a JVM, and a stack trace. Conditions have room for
the sentence that matters.
"""

import re
from typing import Final

_ANSWER: Final = re.compile(r"\bMessage: (.+?)\.? Received status: Status\(")
"""What the API server answered to Spark's client."""

_EXCEPTION: Final = re.compile(
    r'^(?:Exception in thread "[^"]*"|Caused by:) ([\w.$]+(?:: .+)?)$', re.MULTILINE
)

_NOISE: Final = re.compile(
    r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d |WARNING: |Using Spark's default |\s*at |\s*\.\.\. \d+ more|$"
)
"""How a line of the log begins that says nothing about the failure."""


def failure_in(text: str) -> str:
    """Return the part of an error message that says what is wrong.

    Args:
        text: of the Spark operator. Returned as it is unless it is the output of spark-submit.
    """
    if (answer := _ANSWER.search(text)) is not None:
        return answer[1]
    if found := _EXCEPTION.findall(text):
        return str(found[-1])
    first, *others = text.strip().splitlines() or [""]
    telling = [line.strip() for line in others if not _NOISE.match(line)]
    return " ".join([first.strip(), *telling]) if len(others) else text.strip()
