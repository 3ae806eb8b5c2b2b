"""The parts of a planner, each made when it is needed first, and what they ask of one another."""

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from balanced_source.api import (
    MAX_WATERMARK,
    Problem,
    ProblemKey,
    SourceEvent,
    SplitId,
)
from balanced_source.documents.environment import interval_of
from balanced_source.documents.storage import FIRST_HOST
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import (
    InvalidSpecError,
)
from balanced_source.host.alignment import RecordTime, unaligned
from balanced_source.host.ends import (
    Marks,
    SplitEnd,
)
from balanced_source_adapters.connectors import installed
from balanced_source_spark.aligner import Aligner
from balanced_source_spark.channels.channel import AssignmentChannel, Rescalable
from balanced_source_spark.channels.factory import open_channel
from balanced_source_spark.contract.checked_hooks import hooks_of
from balanced_source_spark.contract.half import AnyHalf, half_of
from balanced_source_spark.contract.hooks import NO_SETTINGS, PlannerContext, PlannerHooks
from balanced_source_spark.contract.option_table import rejected
from balanced_source_spark.control import Control
from balanced_source_spark.driver_calls import DriverCalls
from balanced_source_spark.ends import Ends, Tell
from balanced_source_spark.executors import AdoptionGate, Board
from balanced_source_spark.group_alignment import GroupAlignment
from balanced_source_spark.host_runtime import HostRuntime
from balanced_source_spark.options import AlignmentOptions, Options, query_of
from balanced_source_spark.place import this_place
from balanced_source_spark.planning_watch import PlanningWatch
from balanced_source_spark.sample_collector import SampleCollector
from balanced_source_spark.short_splits import ShortSplits

if TYPE_CHECKING:
    from balanced_source_spark.driver_metrics import DriverMetrics


class AlignmentFigures(Protocol):
    """What people and the alignment group are told of an alignment in event time."""

    @property
    def watermark(self) -> int:
        """How far this source is, see `balanced_source.documents.alignment`."""
        ...

    def report(self) -> dict[str, Any]:
        """For the query's progress: milliseconds since the epoch."""
        ...


class PlannerParts:
    """Makes and connects the parts; the base of `StreamPlanner`."""

    _options: Options
    _hooks: PlannerHooks
    _base: StreamOffset
    _targets: dict[SplitId, int] | None
    _is_pulling: bool = False

    @property
    def _ends_by_itself(self) -> bool:
        """Whether this query must end, with the available records or with its source."""
        return self._targets is not None or self._is_pulling

    def _made_hooks(self) -> PlannerHooks:
        context = PlannerContext(
            query=query_of(self._options),
            settings=self._settings,
            known_settings=self._known_settings,
            set_problem=self._set_problem,
            check_problems=self._check_problems,
            send_source_event=self._send_event,
        )
        hooks = hooks_of(self._half, context, connector=self._options.connector)
        if self._options.alignment is not None and not hooks.tells_event_times:
            # Without event times no split would ever be read on.
            raise rejected("alignmentMaxDrift", unaligned(self._options.connector))
        return hooks

    @cached_property
    def _half(self) -> AnyHalf[Any]:
        return half_of(self._options.connector)

    @cached_property
    def _channel(self) -> AssignmentChannel:
        return open_channel(self._options)

    @cached_property
    def _control(self) -> Control | None:
        """Only streams have one: it is made when the first progress is."""
        return Control(self._channel.rescale) if isinstance(self._channel, Rescalable) else None

    @cached_property
    def _runtime(self) -> HostRuntime:
        return HostRuntime(
            self._channel,
            host=self._options.host,
            former_hosts=self._options.former_hosts,
            gate=self._gate,
            with_former=self._hooks.with_former,
            on_event=self._hooks.handle_source_event,
            calls=_driver_calls(self._options),
            place=this_place(self._options.zone),
            watch=PlanningWatch(interval=interval_of(os.environ)),
        )

    @cached_property
    def _gate(self) -> AdoptionGate:
        folder = self._options.executors_dir
        return AdoptionGate(
            Board(folder) if folder is not None else None, patience=self._options.executor_patience
        )

    @cached_property
    def _ends(self) -> Ends:
        tell: Tell = lambda scope, problem: self._runtime.set_problem(("ends", scope), problem)  # noqa: E731
        return Ends(self._ask_ends, tell=tell, scope_of=self._hooks.scope_of)

    @cached_property
    def _short_splits(self) -> ShortSplits:
        return ShortSplits(self._set_problem)

    @property
    def _alignment(self) -> AlignmentFigures | None:
        """What is told of it; None: splits are not aligned."""
        return self._aligner

    @cached_property
    def _aligner(self) -> Aligner | None:
        asked = self._options.alignment
        if asked is None:
            return None
        return Aligner(
            self._ask_times,
            max_drift=asked.max_drift,
            idle_timeout=self._idle_timeout(asked),
            others=self._others,
            scope_of=self._hooks.scope_of,
        )

    def _idle_timeout(self, asked: AlignmentOptions) -> float:
        # A query that ends by itself has no time to wait for splits that are read.
        return 0.0 if self._ends_by_itself else asked.idle_timeout

    def _others(self) -> int:
        """How far the other sources of the alignment group are."""
        # A query that ends by itself has no time to wait for them either.
        if self._group is None or self._ends_by_itself:
            return MAX_WATERMARK
        return self._group.others()

    @cached_property
    def _group(self) -> GroupAlignment | None:
        asked = self._options.alignment
        if asked is None or asked.group is None:
            return None
        return GroupAlignment(
            asked.group,
            max_drift=asked.max_drift,
            idle_timeout=asked.idle_timeout,
            newest=lambda: self._runtime.newest_assignment(timeout=0.0),
        )

    @cached_property
    def _samples(self) -> SampleCollector:
        """Only a query that plans tasks has one."""
        return SampleCollector()

    @cached_property
    def _metrics(self) -> "DriverMetrics | None":
        if self._options.metrics_port is None:
            return None
        # few queries serve any: a web server
        from balanced_source_spark.driver_metrics import DriverMetrics

        options = self._options
        # Without a source, the namespace is only the option's default.
        source, namespace = (
            (options.source, options.namespace) if options.source else ("embedded", "")
        )
        return DriverMetrics(source, namespace=namespace, port=options.metrics_port)

    def _settings(self) -> Mapping[str, Any]:
        """Returns what the newest assignment says; nothing while there is none."""
        assignment = self._runtime.newest_assignment(timeout=0.0)
        return self._of_its_kind(assignment.settings) if assignment is not None else NO_SETTINGS

    def _set_problem(self, key: ProblemKey, problem: Problem | None) -> None:
        self._runtime.set_problem(key, problem)

    def _send_event(self, subtask_id: int, event: SourceEvent) -> bool:
        return self._runtime.send_event(subtask_id, event)

    def _check_problems(self) -> None:
        self._runtime.check_problems()

    def _known_settings(self) -> Mapping[str, Any]:
        """Returns what assignments said, with what only former ones named."""
        return self._of_its_kind(self._runtime.settings(timeout=0.0))

    def _of_its_kind(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the settings of an assignment.

        Raises:
            InvalidSpecError: they are for another connector than the one that reads.
        """
        if settings and self._options.connector not in settings:
            raise InvalidSpecError(
                f"the source is of kind {', '.join(settings)}, and this query would read it with"
                f" connector {self._options.connector!r}: set the option connector to the kind of"
                " the source",
                field="option connector",
            )
        return settings

    def _ask_ends(self, scope: str, split_ids: Iterable[SplitId]) -> Mapping[SplitId, SplitEnd]:
        # Before the first assignment no one knows how to reach the scope.
        if self._runtime.newest_assignment(timeout=0.0) is None:
            return {}
        listed = list(split_ids)
        return self._hooks.ends(scope, listed, Marks(self._base, listed))

    def _ask_times(
        self, scope: str, millis: Mapping[SplitId, int]
    ) -> Mapping[SplitId, RecordTime | None]:
        if self._runtime.newest_assignment(timeout=0.0) is None:
            return {}
        return self._hooks.event_times(scope, millis)


def _driver_calls(options: Options) -> DriverCalls | None:
    """Returns what makes calls for an operator, on the first host.

    Local mode makes them by itself.
    """
    if options.source is None or options.host != FIRST_HOST:
        return None
    query = query_of(options)
    return DriverCalls(
        lambda: installed().get(options.connector), query.secrets, client_id=query.client_id
    )
