"""What a failure is about, in the output of spark-submit or of a driver.

Kubeflow's operator reports all that spark-submit prints: the log of a JVM, and a stack trace. Of a
driver the end of its output is in the status of its pod. Conditions have room for the sentence that
matters.
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


_RAISED: Final = re.compile(
    r'^(?:: |Caused by: |Exception in thread "[^"]*" )?'
    r"((?:\w+\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Failure)(?:: .+)?)$",
    re.MULTILINE,
)
"""A line of Python's or Java's that names what was raised; `: ` is how Py4J begins it."""

_OF_THE_PROGRAM: Final = "SparkUserAppException"
"""What Spark raises because the program has failed: it says nothing of the cause."""


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


def reason_in(output: str) -> str:
    """Return the line of a driver's output that says why it ended; empty if there is none.

    Args:
        output: the end of what it has printed, or the one line that it has left as its reason.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if len(lines) <= 1:
        return "".join(lines)
    raised = [text for text in _RAISED.findall(output) if _OF_THE_PROGRAM not in text]
    telling = [line for line in lines if not _NOISE.match(line)]
    return str(next(reversed(raised or telling), ""))
