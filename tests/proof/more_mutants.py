"""Further seeded bugs.

Of stored state, of drivers, of bounded sources, of clusters and of recreated topics.
"""

from dataclasses import replace
from typing import Final

from proof.mutation import Mutant
from proof.values import Budget, Setting

_COORDINATOR: Final = "coordinator.coordinator:SourceCoordinator"
_CODEC: Final = "coordinator.state_codec"
_DISCOVERY_STATE: Final = "connectors.discovery.source:DiscoveringSource.decode_state"
_ENUMERATOR: Final = "connectors.discovery.enumerator:DiscoveringSplitEnumerator"
_ON_ASSIGNMENT: Final = "host.machine:ReaderHost.on_assignment"

_HOSTS: Final = ("0", "1")
_RETENTION: Final = 1e9

_TWO_CRASHES: Final = Setting(name="two crashes", budget=Budget(crashes=2), splits=1, records=1)
_OLD_REPORT: Final = Setting(name="old report", budget=Budget(crashes=1, old_news=1), splits=1)
_LOST: Final = Setting(name="lost state", budget=Budget(crashes=1, amnesia=1), splits=1)
_WIPED: Final = Setting(
    # Without the move, the report of the former driver says as much as the state.
    name="lost checkpoint, and a move",
    budget=Budget(wipes=1, moves=1),
    splits=1,
)
_RESTORED: Final = Setting(name="restored state", budget=Budget(restores=1), splits=1, records=1)
_BLIND_TWICE: Final = Setting(
    name="blind twice, and a crash",
    budget=Budget(crashes=1, blind=2),
    splits=1,
    retention=_RETENTION,
)
_BLIND_ONE: Final = Setting(
    name="blind twice, and a crash",
    budget=Budget(crashes=1, blind=2),
    splits=1,
    records=1,
    retention=_RETENTION,
)
_BOUNDED: Final = Setting(
    name="bounded",
    budget=Budget(crashes=1),
    splits=1,
    records=1,
    is_periodic=False,
    is_bounded=True,
)
_PAUSED: Final = replace(
    _BOUNDED,
    name="a cluster pauses, bounded",
    budget=Budget(edits=1),
    splits=2,
    retention=_RETENTION,
    variants=(("c", "d"), ("c", "-d")),
)
_PAUSED_TWICE: Final = replace(_PAUSED, name="a cluster pauses twice", budget=Budget(edits=2))
_NAMED: Final = replace(_BOUNDED, name="a topic that is named", names=("a", "b"))
_RECREATED: Final = Setting(
    name="recreated", budget=Budget(crashes=1, recreations=1), splits=1, records=1, may_lose=True
)
_CLUSTERS: Final = Setting(
    name="clusters",
    budget=Budget(edits=2, crashes=1),
    splits=2,
    records=1,
    retention=_RETENTION,
    variants=(("c", "d"), ("c",)),
)
_HOSTS_RESCALE: Final = Setting(
    name="hosts, rescale",
    budget=Budget(rescales=1, crashes=1),
    records=1,
    parallelisms=(2,),
    hosts=_HOSTS,
)
_STORED: Final = tuple(
    Mutant(
        name=f"the state {what}",
        rule=rule,
        where=where,
        old=old,
        new=new,
        setting=setting,
        is_slow=is_slow,
    )
    for what, rule, where, old, new, setting, is_slow in (
        (
            "forgets which splits are revoked",
            "rule 6, write ahead",
            f"{_CODEC}:_coordinator_from_json",
            'revoking=_revoking_from_json(data["revoking"], source),',
            "",
            _HOSTS_RESCALE,
            False,
        ),
        (
            "forgets which positions hosts retain",
            "rule 6, write ahead",
            f"{_CODEC}:_coordinator_from_json",
            'retained=columns.decode_ids(data["retained"]),',
            "",
            _BLIND_TWICE,
            False,
        ),
        (
            "forgets which splits were given back before their host let go",
            "rule 6, write ahead",
            f"{_CODEC}:_coordinator_from_json",
            'reclaimed=columns.decode_ids(data["reclaimed"]),',
            "",
            _BLIND_ONE,
            False,
        ),
        (
            "forgets which readers know the end",
            "rule 6, write ahead",
            f"{_CODEC}:_coordinator_from_json",
            'no_more_splits=frozenset(data["noMoreSplits"]),',
            "",
            Setting(name="once", budget=Budget(crashes=1), splits=1, records=1, is_periodic=False),
            False,
        ),
        (
            "is stored with the epoch before",
            "rule 6, write ahead",
            f"{_CODEC}:_coordinator_from_json",
            'epoch=int(data["epoch"]),',
            'epoch=int(data["epoch"]) - 1,',
            _TWO_CRASHES,
            False,
        ),
        (
            "forgets which epoch addresses a host",
            "rule 6, write ahead",
            f"{_CODEC}:_host_from_json",
            'addressed_epoch=int(data["addressedEpoch"])',
            "addressed_epoch=0",
            _TWO_CRASHES,
            False,
        ),
        (
            "forgets incarnations",
            "rule 6, write ahead",
            f"{_CODEC}:_host_from_json",
            'incarnation=int(data["incarnation"])',
            "incarnation=0",
            _OLD_REPORT,
            False,
        ),
        (
            "has positions as assigned, not as reported",
            "rule 2, exactly once",
            f"{_CODEC}:_coordinator_to_json",
            "state.positions(state.owners),",
            "{s: x.position for s, x in state.splits.items()},",
            _WIPED,
            False,
        ),
        (
            "forgets finished splits",
            "liveness",
            _DISCOVERY_STATE,
            'finished=columns.decode_ids(data["finished"])',
            "finished=frozenset()",
            _BOUNDED,
            False,
        ),
    )
)
"""What a restarted operator reads back is not what was decided."""

_OPERATOR: Final = (
    Mutant(
        name="an opened gate is not published",
        rule="liveness",
        where=f"{_COORDINATOR}._open_gate",
        old="context.turn.is_changed = True",
        new="pass",
        setting=_TWO_CRASHES,
    ),
    Mutant(
        name="readers may be given splits while the gate is closed",
        rule="rule 7, gate",
        where=f"{_COORDINATOR}._register",
        old="context.set_readers({})",
        new="pass",
        setting=Setting(
            name="hosts before the operator",
            budget=Budget(crashes=1),
            splits=1,
            records=1,
            parallelism=2,
            hosts=_HOSTS,
            are_drivers_early=True,
        ),
    ),
    Mutant(
        name="splits that a restarted driver does not know are not given back",
        rule="liveness",
        where="coordinator.recovery:_uncovered",
        old="split_id not in report.positions",
        new="False",
        setting=_TWO_CRASHES,
    ),
    Mutant(
        name="reports of a former lineage count",
        rule="rule 2, exactly once",
        where=f"{_COORDINATOR}._on_report",
        old="or report.lineage < self.state.lineage",
        new="",
        setting=_LOST,
    ),
    Mutant(
        name="an older report of the same incarnation counts",
        rule="liveness",
        where=f"{_COORDINATOR}._on_report",
        old="report.sequence > host.report.sequence",
        new="True",
        setting=_OLD_REPORT,
    ),
    Mutant(
        name="after lost state, hosts that have not registered count as empty",
        rule="rule 7, gate",
        where="coordinator.recovery:waiting_for",
        old="or not state.is_first_life",
        new="or False",
        setting=Setting(
            name="lost state of two hosts",
            budget=Budget(crashes=1, amnesia=1),
            splits=1,
            records=1,
            parallelism=2,
            hosts=_HOSTS,
        ),
    ),
    Mutant(
        name="an older copy of the state is trusted",
        rule="rule 10, fencing",
        where="coordinator.registration:is_outdated",
        old="    if published is None:",
        new="    return False\n    if published is None:",
        setting=_RESTORED,
    ),
    Mutant(
        name="an older copy of the state goes on in the lineage that it is of",
        rule="rule 2, exactly once",
        where="coordinator.registration:started_over",
        old="max(state.lineage + 1, lineage + 1, least)",
        new="state.lineage",
        setting=_RESTORED,
    ),
    Mutant(
        name="a split that was found after a checkpoint was copied continues where it was",
        rule="rule 2, nothing lost",
        where="coordinator.recovery:_goes_back",
        old="len(state.hosts) == 1",
        new="False",
        setting=Setting(
            name="an older checkpoint",
            budget=Budget(copies=1, crashes=1, growths=1),
            records=1,
            splits=1,
        ),
    ),
    Mutant(
        name="drivers of a source that has moved are taken for the former ones",
        rule="liveness",
        where="coordinator.state:Checkpoint.taken_over",
        old="replace(host, incarnation=0)",
        new="host",
        setting=Setting(
            name="a source moves", budget=Budget(moves=1, crashes=1), records=1, splits=1
        ),
    ),
    Mutant(
        name="a rescale adds no readers",
        rule="rule 3, balanced",
        where=f"{_COORDINATOR}._on_parallelism",
        old="self._add_readers(range(before, parallelism))",
        new="pass",
        setting=Setting(
            name="rescale and crash",
            budget=Budget(rescales=1, crashes=1),
            records=1,
            parallelisms=(1, 2),
        ),
        is_slow=True,
    ),
    Mutant(
        name="a driver that registers after it has read everything is not heard",
        rule="liveness",
        where=f"{_COORDINATOR}._open_gate",
        old="self._find_finished(report)",
        new="pass",
        setting=_BOUNDED,
    ),
    Mutant(
        name="an acknowledgement counts for splits of later epochs too",
        rule="liveness",
        where="coordinator.tracker:SplitAssignmentTracker.on_checkpoint_complete",
        old="owned if taken > checkpoint_id else",
        new="",
        setting=Setting(
            name="growth and crash", budget=Budget(growths=1, crashes=1), splits=1, records=1
        ),
        is_slow=True,
    ),
    Mutant(
        name="settings that changed while the operator was down are not published",
        rule="an epoch for nothing",
        where=f"{_COORDINATOR}.start",
        old="self._publish_new_settings()",
        new="pass",
        setting=_CLUSTERS,
    ),
)

_DISCOVERY: Final = (
    Mutant(
        name="the enumerator does not notice a recreated topic",
        rule="rule 2, nothing lost",
        where="connectors.discovery.recreated:_is_former",
        old="attributes = {IDENTITY: identity}",
        new="attributes = {}",
        setting=_RECREATED,
    ),
    Mutant(
        name="positions of removed splits are not kept",
        rule="rule 2, exactly once",
        where=f"{_ENUMERATOR}._remove",
        old="gone, keep = frozenset(removed), self.source.retention > 0 and not forget",
        new="gone, keep = frozenset(removed), False",
        setting=Setting(name="blind twice", budget=Budget(blind=2), splits=1, retention=_RETENTION),
    ),
    Mutant(
        name="a failed discovery is not repeated",
        rule="liveness",
        where=f"{_ENUMERATOR}._scope_failed",
        old="self._ask(scope",
        new="(lambda *a, **k: None)(scope",
        setting=Setting(name="fault", budget=Budget(crashes=1, faults=1), splits=1, records=1),
    ),
    Mutant(
        name="a source ends before a topic that is named was there",
        rule="rule 2, nothing lost",
        where=f"{_ENUMERATOR}._scope_listed",
        old=".listed(scope, result).awaiting(scope, awaited)",
        new=".listed(scope, result)",
        setting=_NAMED,
    ),
)

_DRIVER: Final = (
    Mutant(
        name="a logged offset is read without its starts",
        rule="contract",
        where="documents.stream_offset:from_json",
        old='starts=columns.decode_map(data["starts"])',
        new="starts={}",
        setting=_TWO_CRASHES,
    ),
    Mutant(
        name="a logged offset is read without topic ids",
        rule="rule 2, nothing lost",
        where="documents.stream_offset:from_json",
        old='attributes=columns.decode_map(data["attributes"]) if version > 1 else {}',
        new="attributes={}",
        setting=_RECREATED,
    ),
    Mutant(
        name="a driver takes assignments of a former lineage",
        rule="rule 10, fencing",
        where=_ON_ASSIGNMENT,
        old="assignment.lineage < self.lineage or",
        new="",
        setting=Setting(
            name="lost state and old news",
            budget=Budget(crashes=1, old_news=1, amnesia=1),
            splits=1,
            records=1,
        ),
    ),
    Mutant(
        name="a driver takes an older assignment for a newer one",
        rule="liveness",
        where=_ON_ASSIGNMENT,
        old="assignment.epoch <= self.assignment.epoch",
        new="False",
        setting=Setting(
            name="old news", budget=Budget(rescales=1, old_news=1), records=1, parallelisms=(1, 2)
        ),
    ),
    Mutant(
        name="a driver drops the positions that it should retain",
        rule="rule 2, exactly once",
        where="host.adoption:adopt",
        old="retained = {s: held[s] for s in _kept(assignment) if s in held and s not in owned}",
        new="retained = {}",
        setting=_BLIND_ONE,
        is_slow=True,
    ),
    Mutant(
        name="a split that returns starts where the operator last saw it",
        rule="rule 2, exactly once",
        where="host.adoption:_start",
        old="own = (offset.positions, offset.retained) if is_kept else ()",
        new="own = ()",
        setting=_BLIND_ONE,
        is_slow=True,
    ),
    Mutant(
        name="a driver reports positions that are planned, not delivered",
        rule="rule 2, exactly once",
        where="host.machine:ReaderHost.report",
        old="self.committed.get(s, durable.starts.get(s)) for s in durable.positions",
        new="p for s, p in durable.positions.items()",
        setting=_WIPED,
    ),
    Mutant(
        name="a driver keeps the assignment of a former lineage",
        rule="rule 10, fencing",
        where=_ON_ASSIGNMENT,
        old="assignment=None, events_seen=0",
        new="events_seen=0",
        setting=_LOST,
    ),
    Mutant(
        name="a query ends before its last report is written",
        rule="liveness",
        where="balanced_source_spark.host_runtime:HostRuntime.is_finished",
        old="return is_reported",
        new="return True",
        setting=_BOUNDED,
    ),
    Mutant(
        name="a source with an end does not wait for a cluster that pauses",
        rule="rule 2, nothing lost",
        where="connectors.discovery.placing:PlacingEnumerator._awaits_paused",
        old="bool(paused) and any(",
        new="False and any(",
        setting=_PAUSED,
    ),
    Mutant(
        name="what is read to its end on its way out waits for another epoch",
        rule="liveness",
        where=f"{_COORDINATOR}._let_go",
        old="may_end and has_read(before, report, r)",
        new="False",
        setting=_PAUSED_TWICE,
        is_slow=True,
    ),
    Mutant(
        name="a split that was let go of at its end waits for another report",
        rule="liveness",
        where="coordinator.finished:newly_finished",
        old="chain(report.positions, report.retained)",
        new="report.positions",
        setting=_PAUSED_TWICE,
        is_slow=True,
    ),
    Mutant(
        name="a split that comes back at its end waits for another report",
        rule="liveness",
        where="connectors.discovery.values:DiscoveryState.with_returned",
        old="if is_read(split)",
        new="if False",
        setting=_PAUSED_TWICE,
        is_slow=True,
    ),
    Mutant(
        name="a query ends before its readers know that there are no more splits",
        rule="liveness",
        where="host.finish:is_finished",
        old=(
            "not assignment.no_more_splits.issuperset(offset.readers or"
            " range(assignment.parallelism))"
        ),
        new="False",
        setting=_BOUNDED,
    ),
)

MORE: Final = (*_STORED, *_OPERATOR, *_DISCOVERY, *_DRIVER)
"""Each is found by the search of its own setting."""
