"""What the exploration does not execute, and why.

Module, or module and function → the reason, in words.
"""

from collections.abc import Mapping
from typing import Final

_LOADS: Final = (
    "Loads of splits: weighted assignment and drift rebalances are tested and simulated, not"
    " explored."
)
_EVENTS: Final = "Custom events between enumerator and readers: no connector that ships sends any."
_ALIGNMENT: Final = (
    "Alignment in event time: it changes how much a micro-batch reads, never who reads it."
)
_TIME: Final = "No time passes here, so no deadline does."
_MADE: Final = (
    "Builds a part that the exploration replaces: threads, files, brokers or a web server."
)
_PEOPLE: Final = (
    "For people or for other processes: logs, numbers and problems; nothing is decided on them."
)
_REFUSAL: Final = "Refuses a call that breaks the contract; nothing that is explored makes one."
_OLDER: Final = "Reads documents of older versions, which tests with golden documents do."
_ENDS_ITSELF: Final = (
    "Queries with `trigger(availableNow=True)` are tested with Spark, not explored."
)
_EMBEDDED: Final = (
    "Queries without an operator: what they assign is not stored, and unit tests replay them."
)
_RUNTIME: Final = (
    "The loop of the reporter thread; the exploration decides when a report is written."
)

_SILENT: Final = (
    "Partitions whose leader does not answer: random lives of leaders test them, no broker is"
    " silent here."
)

_PULL: Final = "Readers that ask for splits: no planner is explored with them."
_DOUBT: Final = (
    "After a lost state nothing is read that may have been read: unit tests of pulling readers."
)
_ONE_HOST: Final = "Readers that ask for splits are explored on one host, and keep their numbers."

_INTERPRETER: Final = (
    "How the operator executes effects; the exploration executes them itself, and dies between any"
    " two."
)
_LOGS: Final = (
    "Logs that servers have cut at another place than ours: `tests/unit/host/test_log_check.py`;"
    " no log is cut here."
)
_CALLS: Final = (
    "Calls that only a driver can make: tests of drivers make them, no broker needs any."
)

_LATER: Final = (
    "The API server refuses a write, which is tried again; here a write is a step that may come"
    " late."
)

_COORDINATOR: Final = "balanced_source.coordinator"
_ENUMERATOR: Final = "balanced_source.connectors.discovery.enumerator:DiscoveringSplitEnumerator"
_RUNTIME_OF: Final = "balanced_source_spark.host_runtime:HostRuntime"
_NEWEST: Final = "balanced_source_spark.newest_assignment:NewestAssignment"
_PLANNER: Final = "balanced_source_spark.planner:StreamPlanner"
_HOOKS: Final = "balanced_source_spark.kafka.hooks:KafkaHooks"

_PLACING: Final = "balanced_source.connectors.discovery.placing:PlacingEnumerator"
_REPORTER: Final = "balanced_source_spark.host_reporter:HostReporter"
_PARTS: Final = "balanced_source_spark.planner_parts:PlannerParts"

_PULLING: Final = "balanced_source.connectors.pull.enumerator:PullingSplitEnumerator"

REASONS: Final[Mapping[str, str]] = {
    f"{_PULLING}._doubt": _DOUBT,
    f"{_PULLING}._end_doubt": _DOUBT,
    f"{_PULLING}.handle_history": _DOUBT,
    f"{_PULLING}._is_in_zone": "Lists of numbers are nowhere: unit tests of locality.",
    f"{_PULLING}._is_near": "Lists of numbers are nowhere: unit tests of locality.",
    f"{_PULLING}._failed": "No listing fails here: unit tests of single steps.",
    f"{_PULLING}.handle_listing": "No listing fails here: unit tests of single steps.",
    f"{_PULLING}.add_reader": "The coordinator registers all readers of a host at once.",
    f"{_PULLING}.handle_renumbered": _ONE_HOST,
    f"{_PULLING}.handle_revoked": _ONE_HOST,
    "balanced_source.connectors.pull.enumerator:_is_newer": _ONE_HOST,
    f"{_PULLING}.handle_source_change": "Lists of numbers are not edited: unit tests of steps.",
    f"{_PULLING}.handle_split_request": "Reports carry numbers of splits, not single requests.",
    f"{_PULLING}.is_exhausted": "Parts of hybrid sources: unit tests of those.",
    f"{_PULLING}.blocked": _PEOPLE,
    f"{_PULLING}.pending_splits": _PEOPLE,
    f"{_PULLING}.problems": _PEOPLE,
    f"{_PLACING}._follow_drift": _LOADS,
    f"{_PLACING}.handle_loads": _LOADS,
    f"{_PLACING}._is_settled": _LOADS,
    f"{_ENUMERATOR}.handle_source_change": _REFUSAL,
    f"{_ENUMERATOR}.handle_alarm": _TIME,
    f"{_ENUMERATOR}.add_reader": "The coordinator registers all readers of a host at once.",
    f"{_ENUMERATOR}.blocked": _PEOPLE,
    f"{_ENUMERATOR}.pending_splits": _PEOPLE,
    "balanced_source.connectors.discovery.source:_decoded_assigner": _OLDER,
    f"{_COORDINATOR}.effects": _INTERPRETER,
    f"{_COORDINATOR}.context:CoordinatorContext._check_shapes": _REFUSAL,
    f"{_COORDINATOR}.context:CoordinatorContext._entered": _REFUSAL,
    f"{_COORDINATOR}.context:CoordinatorContext.report": _REFUSAL,
    f"{_COORDINATOR}.context:CoordinatorContext.signal_no_more_splits": _REFUSAL,
    f"{_COORDINATOR}.context:CoordinatorContext.zone_of": _PULL,
    f"{_COORDINATOR}.context:_wrong": _REFUSAL,
    f"{_COORDINATOR}.state_codec:encode": _REFUSAL,
    f"{_COORDINATOR}.view:_check_kind": _REFUSAL,
    f"{_COORDINATOR}.view:digest_of_settings": _REFUSAL,
    "balanced_source.connectors.discovery.answers": _REFUSAL,
    "balanced_source.host.adoption:_start": _REFUSAL,
    "balanced_source.host.log_check": _LOGS,
    "balanced_source.host.observation": _PEOPLE,
    "balanced_source.host.pacing": _PULL,
    "balanced_source.host.pausing": _ALIGNMENT,
    "balanced_source.host.reader_figures": _PEOPLE,
    f"{_COORDINATOR}.context:CoordinatorContext._check_registered": _REFUSAL,
    f"{_COORDINATOR}.context:CoordinatorContext._checked": _REFUSAL,
    f"{_COORDINATOR}.context:CoordinatorContext.send_event_to_reader": _EVENTS,
    f"{_COORDINATOR}.context:CoordinatorContext.split_loads": _LOADS,
    f"{_COORDINATOR}.context:CoordinatorContext.split_positions": _LOADS,
    f"{_COORDINATOR}.coordinator:SourceCoordinator.handle": (
        "Refuses early events; a rebalance by hand."
    ),
    f"{_COORDINATOR}.coordinator:SourceCoordinator.start": _REFUSAL,
    f"{_COORDINATOR}.coordinator:SourceCoordinator.is_restored": _PEOPLE,
    f"{_COORDINATOR}.coordinator:SourceCoordinator.rebuilt": (
        "Local mode rebuilds its coordinator after an error."
    ),
    f"{_COORDINATOR}.host_reports:HostReports._deliver": _EVENTS,
    f"{_COORDINATOR}.host_reports:HostReports._take_events": _EVENTS,
    f"{_COORDINATOR}.host_reports:HostReports._observe_loads": _LOADS,
    f"{_COORDINATOR}.coordinator:SourceCoordinator._on_rebalance": (
        "A rebalance that the user asks for by hand."
    ),
    f"{_COORDINATOR}.coordinator:SourceCoordinator.waiting_for": _PEOPLE,
    f"{_COORDINATOR}.coordinator:SourceCoordinator.close": _MADE,
    f"{_COORDINATOR}.membership:check_positive": _REFUSAL,
    f"{_COORDINATOR}.loads": _LOADS,
    f"{_COORDINATOR}.mailbox": _EVENTS,
    f"{_COORDINATOR}.source_groups": _ALIGNMENT,
    "balanced_source.host.finish:is_read": _PULL,
    f"{_COORDINATOR}.state_codec:_upgrade_1": _OLDER,
    f"{_COORDINATOR}.state_codec:_upgrade_2": _OLDER,
    f"{_COORDINATOR}.state_codec:_upgrade_host_1": _OLDER,
    f"{_COORDINATOR}.recovery:_with_one_holder": "Two hosts that share a Spark checkpoint.",
    "balanced_source.host.alignment": _ALIGNMENT,
    "balanced_source.host.cutting": (
        "Hot splits that are cut: which reader reads a range, never which range."
    ),
    "balanced_source.host.ends": _SILENT,
    "balanced_source.host.journal": "Explored by itself, in `tests/proof/journal.py`.",
    "balanced_source.host.journaling": (
        "Sources that are read with a journal; random lives of queries test them."
    ),
    "balanced_source.host.machine:ReaderHost.send_event": _EVENTS,
    f"{_REPORTER}._await_occasion": _RUNTIME,
    f"{_REPORTER}._keep_reporting": _RUNTIME,
    f"{_REPORTER}._give_up_claim": (
        "A query that is stopped in order: here drivers only die, or end by themselves."
    ),
    f"{_REPORTER}._register": _LATER,
    f"{_REPORTER}._write": _LATER,
    f"{_REPORTER}._report_now": _LATER,
    f"{_RUNTIME_OF}.base": (
        "Refuses an assignment that breaks the contract; the search ends where one does."
    ),
    f"{_RUNTIME_OF}._hand_over": _EVENTS,
    f"{_RUNTIME_OF}.send_event": _EVENTS,
    f"{_RUNTIME_OF}.check_problems": _PEOPLE,
    f"{_RUNTIME_OF}.close": _MADE,
    f"{_RUNTIME_OF}.problems": _PEOPLE,
    f"{_RUNTIME_OF}.first_assignment": _ENDS_ITSELF,
    f"{_RUNTIME_OF}.wait_until_assigned": _ENDS_ITSELF,
    f"{_RUNTIME_OF}.wait_until_begun": _EMBEDDED,
    "balanced_source_spark.host_runtime:_unexpected": _EVENTS,
    f"{_NEWEST}.settings": _ENDS_ITSELF,
    f"{_NEWEST}.first": _ENDS_ITSELF,
    f"{_HOOKS}._admin": _MADE,
    f"{_HOOKS}._admission": _MADE,
    f"{_HOOKS}.event_times": _ALIGNMENT,
    f"{_HOOKS}.figures": _PEOPLE,
    f"{_HOOKS}.close": _MADE,
    f"{_PARTS}._of_its_kind": _REFUSAL,
    f"{_PLANNER}._check_shape": _REFUSAL,
    f"{_PARTS}._send_event": _EVENTS,
    f"{_PARTS}._ends": _MADE,
    f"{_PARTS}._gate": _MADE,
    f"{_PARTS}._runtime": _MADE,
    f"{_PARTS}._metrics": _MADE,
    f"{_PARTS}._aligner": _ALIGNMENT,
    f"{_PARTS}._group": _ALIGNMENT,
    f"{_PARTS}._ask_times": _ALIGNMENT,
    f"{_PARTS}._others": _ALIGNMENT,
    "balanced_source_spark.planner_parts:AlignmentFigures": _ALIGNMENT,
    f"{_PLANNER}._aligned": _ALIGNMENT,
    f"{_PARTS}._ask_ends": _MADE,
    f"{_PARTS}._channel": _MADE,
    f"{_PARTS}._control": _MADE,
    f"{_PARTS}._made_hooks": _REFUSAL,
    "balanced_source_spark.planner_parts:_driver_calls": _CALLS,
    f"{_REPORTER}._with_answers": _CALLS,
    f"{_RUNTIME_OF}._called": _CALLS,
    f"{_RUNTIME_OF}.unassigned": _ENDS_ITSELF,
    f"{_RUNTIME_OF}.set_problem": _PEOPLE,
    "balanced_source_spark.host_reporter:Progress": _PEOPLE,
    f"{_PLANNER}._begins_pulling": _PULL,
    f"{_PLANNER}._paced": _PULL,
    f"{_PLANNER}.is_pulling": _PULL,
    f"{_PLANNER}._is_over": _ENDS_ITSELF,
    f"{_PLANNER}._stalled": _ENDS_ITSELF,
    f"{_HOOKS}._commit_on": (
        "Commits to a consumer group are for other tools; nothing reads them back."
    ),
    f"{_HOOKS}.note_delivered": (
        "Commits to a consumer group are for other tools; nothing reads them back."
    ),
    f"{_HOOKS}._group_commits": (
        "Commits to a consumer group are for other tools; nothing reads them back."
    ),
    f"{_PLANNER}._looked": _SILENT,
    f"{_HOOKS}._sample": "Sizes of records: they limit a micro-batch in bytes.",
    f"{_PLANNER}.prepareForTriggerAvailableNow": _ENDS_ITSELF,
    f"{_PLANNER}._take_targets": _ENDS_ITSELF,
    f"{_PLANNER}._has_taken_targets": _ENDS_ITSELF,
    "balanced_source.host.micro_batch:within_stops": _ENDS_ITSELF,
    f"{_PLANNER}._tell_left": _EMBEDDED,
    f"{_PLANNER}._with_rests": _EMBEDDED,
    f"{_RUNTIME_OF}._refusal": _EMBEDDED,
    f"{_RUNTIME_OF}._assigner_problems": _EMBEDDED,
    f"{_RUNTIME_OF}._take_assigner_problems": _EMBEDDED,
    f"{_RUNTIME_OF}._check_waiting": _EMBEDDED,
    f"{_RUNTIME_OF}._is_heard": _EMBEDDED,
    f"{_RUNTIME_OF}.settled_epoch": _EMBEDDED,
    f"{_RUNTIME_OF}.check_named": _ENDS_ITSELF,
    "balanced_source_spark.host_runtime:_ended_by": _ENDS_ITSELF,
    f"{_PLANNER}.check_named": _ENDS_ITSELF,
    f"{_PLACING}.is_settled": _ENDS_ITSELF,
    f"{_PLACING}.only_awaits": _EMBEDDED,
    f"{_COORDINATOR}.coordinator:SourceCoordinator.silent_hosts": _PEOPLE,
    "balanced_source.connectors.discovery.contract:SplitDiscovery.recreation_advice": _PEOPLE,
    f"{_HOOKS}.note_skipped": "Tasks tell what they pass over; here planning knows it first.",
    f"{_PLANNER}._limited": _ALIGNMENT,
    f"{_PLANNER}._check_times": _ALIGNMENT,
    f"{_PARTS}._idle_timeout": _ALIGNMENT,
    f"{_HOOKS}.asked_for": _PULL,
    f"{_PLANNER}._awaited_offset": _ENDS_ITSELF,
    f"{_PLANNER}.initialOffset": "Answers with a constant, which the exploration begins with.",
    f"{_PLANNER}.reportLatestOffset": _PEOPLE,
    f"{_PLANNER}.stop": _MADE,
}
