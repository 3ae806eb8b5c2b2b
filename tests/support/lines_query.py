"""A query of the connector of docs/writing-a-connector.md on the real planner, without Spark."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from balanced_source_adapters.registrations import Registration
from balanced_source_spark.options import parse_options
from balanced_source_spark.planner import StreamPlanner
from balanced_source_spark.stream_reader import UNLIMITED, task_reader
from support.connector_page import execute

KIND: Final = "lines"
_MODULE: Final = "lines_connector"


def registration() -> Registration:
    """Return what the page's wheel registers; its module is made."""
    if _MODULE not in sys.modules:
        execute(f"{_MODULE}.py")
    return Registration(kind=KIND, reference=f"{_MODULE}:LinesConnector", package="page 1.0")


@dataclass
class LinesQuery:
    """A query over a folder; each `run` is a new driver with the same checkpoint.

    Attributes:
        folder: of the text files.
        lines: that the sink has.
        offsets: that Spark has logged; all are committed.
        schema: columns that Spark names for a stream, where a part needs them.
    """

    folder: Path
    lines: list[str] = field(default_factory=list)
    offsets: list[dict[str, Any]] = field(default_factory=list)
    schema: Any = None
    planner: StreamPlanner = field(init=False)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self, **options: str) -> None:
        """Make a driver."""
        own = {"connector": KIND, "folders": str(self.folder)}
        text = {**({} if "connector" in options else own), "parallelism": "2", **options}
        self.options = parse_options({"startTimeoutSeconds": "12", **text}, schema=self.schema)
        self.planner = StreamPlanner(self.options)

    def trigger(self) -> bool:
        """Run one micro-batch if there is any; returns whether there was."""
        start = self.offsets[-1] if self.offsets else self.planner.initialOffset()
        end = self.planner.latestOffset(start, UNLIMITED)
        if end == start:
            return False
        self.offsets.append(end)
        reader = task_reader(self.options)()
        for part in self.planner.partitions(start, end):
            for batch in reader.read(cast("Any", part)):
                self.lines += batch.column("line").to_pylist()
        return True

    def run(self) -> None:
        """Read what there is now, as AvailableNow does, and end."""
        self.planner.prepareForTriggerAvailableNow()
        while self.trigger():
            pass
        self.planner.stop()
