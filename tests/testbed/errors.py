"""What can go wrong in the testbed, as exceptions that tell the reader what to do."""

from pathlib import Path


class TestbedError(Exception):
    """Base of all errors of the testbed."""

    __test__ = False  # the name begins with "Test", but it is no test class


class MissingPrerequisiteError(TestbedError):
    """Something that the machine must bring is missing; the message says what to install."""


class BuildError(TestbedError):
    """A build or a download failed, or its result is not what the checkout pins."""


class DeadlineError(TestbedError):
    """A condition did not become true in time."""


class ProcessDiedError(TestbedError):
    """A process of the testbed ended although it should run."""


class CommandError(TestbedError):
    """A command that was run to its end failed.

    Attributes:
        code: its exit code.
        stderr: what it wrote to standard error.
    """

    def __init__(self, what: str, code: int, stderr: str) -> None:
        super().__init__(f"{what} failed with exit code {code}: {stderr.strip()}")
        self.code = code
        self.stderr = stderr


def log_tail(path: Path, lines: int = 20) -> str:
    """The last lines of a log file, for error messages; a note if there is no such file."""
    try:
        text = path.read_text(errors="replace")
    except OSError as error:
        return f"(no log: {error})"
    return "\n".join(text.splitlines()[-lines:])
