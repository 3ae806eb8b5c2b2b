"""Says how to start over on one machine, after an error that asks for another Spark checkpoint."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.spec.application import PipelineSpec

_ASKS: Final = re.compile(
    r"checkpointLocation|[Rr]estore (?:the|a) (?:newest |newer )?checkpoint|make a new source"
)
"""In errors and problems whose advice is about the Spark checkpoint, or another source."""

_SETTING: Final = "spec.application.pipeline.checkpointLocation"


class StartOver:
    """Adds what to do on this machine to messages about the Spark checkpoint.

    Another checkpoint alone is not enough: the documents of local mode remember what was read.

    Args:
        pipeline: of the manifest.
        folder: of local mode.
    """

    def __init__(self, pipeline: PipelineSpec, folder: Path) -> None:
        self._way = _way(pipeline, folder)

    def advise(self, message: str) -> str:
        """Return a message for the user, with a sentence if it asks for another checkpoint."""
        return f"{message.rstrip('.')}. {self._way}" if _ASKS.search(message) else message

    @contextmanager
    def advising(self) -> Iterator[None]:
        """Do the same for an error that the block raises.

        Raises:
            InvalidSpecError: what the block has raised.
        """
        try:
            yield
        except InvalidSpecError as error:
            message = str(error).removeprefix(f"{error.field}: ")
            advised = self.advise(message)
            if advised == message:
                raise
            raise InvalidSpecError(advised, field=error.field) from error


def _way(pipeline: PipelineSpec, folder: Path) -> str:
    path = next((v for name, v in pipeline.sink.options.items() if name.lower() == "path"), "")
    settings = f"set another {_SETTING} than {pipeline.checkpoint_location}"
    settings += f" and another path of the sink than {path}" if path else ""
    return (
        "To start over with balanced-source run, stop it, delete the folder"
        f" {_shown(folder)}, and {settings}. Records are then read from the start positions of the"
        " manifest"
    )


def _shown(folder: Path) -> str:
    """Return a folder as users name it, where that is shorter."""
    here = Path.cwd()
    return str(folder.relative_to(here) if folder.is_relative_to(here) else folder)
