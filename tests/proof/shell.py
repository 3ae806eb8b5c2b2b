"""The planning process of a driver.

The shipped planner and host runtime, loaded with a state to be asked one thing.

`StreamPlanner` and `HostRuntime` are the product's own objects. Their threads, clocks, channel,
files and brokers are made up, and what they remember between two calls is written into them before
each step and read back after it. So a step is a function of values, and can be remembered.
"""

import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import structlog

from balanced_source.api import Problem, ProblemBoard, ProblemKey, SplitId
from balanced_source.documents import stream_offset
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.offset_codec import OffsetCodec
from balanced_source.documents.report import HostReport
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import FencedError
from balanced_source.host import ReaderHost, SplitRange
from balanced_source.host.ends import SplitEnd
from balanced_source_spark.channels.channel import AssignmentListener
from balanced_source_spark.checkpoints import CheckpointWatch
from balanced_source_spark.executors import AdoptionGate, Board
from balanced_source_spark.host_reporter import Progress
from balanced_source_spark.host_runtime import HostRuntime
from balanced_source_spark.instance import Instance
from balanced_source_spark.options import Options
from balanced_source_spark.place import Whereabouts
from balanced_source_spark.planner import StreamPlanner
from proof.brokers import Admin, Lives

Planned = tuple[tuple[int, tuple[SplitRange, ...]], ...]
"""What each reader reads in a micro-batch."""


def text_of(offset: Mapping[str, Any]) -> str:
    """Returns a stream offset as Spark logs it."""
    return json.dumps(offset, sort_keys=True)


@lru_cache(maxsize=100_000)
def offset_of(text: str) -> StreamOffset:
    """Returns a logged stream offset as planning reads it."""
    return stream_offset.from_json(json.loads(text))


EMPTY: Final = text_of(stream_offset.to_json(StreamOffset()))


def is_last(text: str) -> bool:
    """Returns whether a logged micro-batch tells the query to stop."""
    return offset_of(text).closings > 0


class _Channel:
    """Documents between driver and operator.

    Attributes:
        last: the report document.
        newest: incarnation in it.
        next: incarnation that a claim returns.
        written: the report that was written last.
    """

    has_operator = True
    is_durable = True

    def __init__(self) -> None:
        self.last: HostReport | None = None
        self.newest, self.next = 0, 1
        self.written: HostReport | None = None

    def start(self, listener: AssignmentListener) -> None:
        pass

    def claim(self, host: str) -> int:
        return self.next

    def former(self, host: str) -> HostReport | None:
        """The search lets a driver take over at any time, also from one that still runs."""
        return None if self.last is None else replace(self.last, instance="")

    def is_gone(self, instance: Instance) -> bool:
        return False

    def write(self, report: HostReport) -> None:
        if report.incarnation < self.newest:
            raise FencedError("a newer incarnation has written")
        self.written = report

    def refusal(self) -> str | None:
        return None

    def problems(self) -> Mapping[ProblemKey, Problem]:
        return {}

    def close(self) -> None:
        pass


class _Board(Board):
    """The files between the planning process and the driver program, in memory."""

    ready: int = 0

    def post(self, name: str, number: int) -> None:
        pass

    def read(self, name: str) -> int:
        return _Board.ready if name == "ready" else 0


class _Runtime(HostRuntime):
    def _keep_reporting(self) -> None:
        """The search decides when reports are written."""


class _Ends:
    """Asks for the ends of splits without threads."""

    silent: frozenset[SplitId] = frozenset()
    deleted: frozenset[SplitId] = frozenset()
    """No time passes, so no split is missing for long enough."""

    def __init__(self, planner: StreamPlanner) -> None:
        self._planner = planner

    def get(self, split_ids: Iterable[SplitId]) -> Mapping[SplitId, SplitEnd]:
        ends: dict[SplitId, SplitEnd] = {}
        for scope, members in groupby(sorted(split_ids), key=lambda s: str(s[0])):
            ends |= self._planner._ask_ends(scope, list(members))
        return ends


class _NoWatch:
    """Looks for no new records meanwhile: it would tell people only, from another thread."""

    def planner_looked(self) -> None:
        pass


class _OneEach:
    """Admits at most one record of each split.

    The smallest micro-batches have the most interleavings.
    """

    def cap(
        self, held: Mapping[SplitId, int], ends: Mapping[SplitId, int], *_: Any, **__: Any
    ) -> dict[SplitId, int]:
        return {s: min(end, held[s] + 1) for s, end in ends.items()}


class Shell:
    """See the module.

    Attributes:
        runtime: of the loaded driver.
        planner: of the loaded driver.
        channel: its documents.
    """

    def __init__(self) -> None:
        self.channel = _Channel()
        self._board = _Board(Path("/nowhere"))
        self._gate = AdoptionGate(None, patience=math.inf)
        self.planner = StreamPlanner(Options(start_timeout=0.0))
        self.runtime = _Runtime(
            self.channel,
            clock=lambda: 0.0,
            gate=self._gate,
            instance=Instance(id="i"),
            with_former=self.planner._hooks.with_former,
            place=Whereabouts(host=""),
        )
        self._admin = Admin()
        parts = {"_runtime": self.runtime, "_gate": self._gate, "_lag_watch": _NoWatch()}
        hooks: Any = self.planner._hooks
        hooks._made.__dict__.update(_admin=self._admin, _admission=_OneEach())
        self.planner.__dict__.update(
            parts, _ends=_Ends(self.planner), _aligner=None, _group=None, _metrics=None
        )

    def load(
        self,
        host: ReaderHost | None,
        *,
        name: str,
        newest: Assignment | None,
        settings: Mapping[str, Any],
        is_reported: bool = False,
        reported: HostReport | None = None,
        has_closed: bool = False,
        ready: int | None = None,
    ) -> None:
        """Become the planning process of one driver.

        Args:
            host: its state machine; None before it has registered.
            name: of the host.
            newest: assignment that it has seen.
            settings: of readers, from all assignments that it has seen.
            is_reported: whether the state of `host` was written as a report.
            reported: the report document, whoever wrote it.
            has_closed: whether the process has planned a closing micro-batch.
            ready: number of readers for which executors are there; None if no one counts them.
        """
        runtime = self.runtime
        runtime._name, runtime._host, runtime._first = name, host, None
        runtime._offered = 0  # what is planned is logged in the same step
        runtime._seen.assignment, runtime._seen.joined = newest, settings
        # Another process remembers nothing of what this one has decoded.
        self.planner._has_closed, self.planner._codec = has_closed, OffsetCodec()
        runtime._reported = host if is_reported else None
        runtime._failure, runtime._checkpoint = None, CheckpointWatch()
        runtime._problems, runtime._progress = ProblemBoard(lambda _: None), Progress()
        self.channel.last = reported
        self.channel.newest = 0 if reported is None else reported.incarnation
        self.channel.written = None
        self._gate._board, _Board.ready = (None, 0) if ready is None else (self._board, ready)

    def brokers(self, lives: Lives, records: int, *, known: Lives | None = None) -> None:
        """What brokers say during the next call; see `Admin.set`."""
        self._admin.set(lives, records, known=known)

    def plan(self, start: str, end: str) -> Planned:
        """Asks for the partitions of a micro-batch."""
        partitions = self.planner.partitions(json.loads(start), json.loads(end))
        return tuple((p.subtask_id, p.ranges) for p in partitions)

    def latest(self, start: str) -> str:
        """Asks how far the next micro-batch goes.

        Twice if another epoch begins with it: a query that ends by itself does so while it waits
        for splits, and nothing is logged in between.
        """
        found = text_of(self.planner.latestOffset(json.loads(start), None))  # type: ignore[arg-type]
        if offset_of(found).epoch == offset_of(start).epoch:
            return found
        return text_of(self.planner.latestOffset(json.loads(start), None))  # type: ignore[arg-type]

    def register(self, incarnation: int) -> None:
        """Registers the driver as a new incarnation."""
        self.channel.next = incarnation
        self.runtime._register()

    def write(self, sequence: int) -> None:
        """Writes a report, as the reporter thread does."""
        self.runtime._report_now(sequence)


@cache
def shell() -> Shell:
    """Returns the one of this process."""
    return Shell()


@contextmanager
def quiet() -> Iterator[None]:
    """Drops log lines: a search passes the same places a million times."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.configure(**before)
