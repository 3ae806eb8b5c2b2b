"""Further seeded bugs: of stored state, of drivers, of bounded sources and of recreated topics."""

from typing import Final

from proof.mutation import Mutant
from proof.values import Budget, Setting

MORE: Final = (
    Mutant(
        name="an opened gate is not published",
        rule="liveness",
        where="coordinator.coordinator:SourceCoordinator._open_gate",
        old="context.turn.is_changed = True",
        new="pass",
        setting=Setting(name="two crashes", budget=Budget(crashes=2), splits=1, records=1),
    ),
    Mutant(
        name="readers may be given splits while the gate is closed",
        rule="rule 7, gate",
        where="coordinator.coordinator:SourceCoordinator._register",
        old="context.readers = {}  #",
        new="pass  #",
        setting=Setting(
            name="hosts",
            budget=Budget(crashes=1),
            splits=1,
            records=1,
            parallelism=2,
            hosts=("0", "1"),
            are_drivers_early=True,
        ),
    ),
    Mutant(
        name="splits that a restarted driver does not know are not given back",
        rule="liveness",
        where="coordinator.recovery:_uncovered",
        old="split_id not in report.positions",
        new="False",
        setting=Setting(name="two crashes", budget=Budget(crashes=2), splits=1, records=1),
    ),
    Mutant(
        name="reports of a former lineage count",
        rule="rule 2, exactly once",
        where="coordinator.coordinator:SourceCoordinator._on_report",
        old="report.lineage < self.state.lineage or",
        new="",
        setting=Setting(name="lost", budget=Budget(crashes=1, amnesia=1), splits=1),
    ),
    Mutant(
        name="an older report of the same incarnation counts",
        rule="liveness",
        where="coordinator.coordinator:SourceCoordinator._on_report",
        old="report.sequence > host.report.sequence",
        new="True",
        setting=Setting(name="news", budget=Budget(crashes=1, old_news=1), splits=1),
    ),
    Mutant(
        name="after lost state, hosts that have not registered count as empty",
        rule="rule 7, gate",
        where="coordinator.recovery:waiting_for",
        old="if not (state.has_history or state.lineage > 1):",
        new="if True:",
        setting=Setting(
            name="lost hosts", budget=Budget(crashes=1, amnesia=1), splits=1, records=1, parallelism=2, hosts=("0", "1")
        ),
    ),
    Mutant(
        name="the state forgets which splits are revoked",
        rule="rule 6, write ahead",
        where="coordinator.state_codec:_coordinator_from_json",
        old='revoking=_revoking_from_json(data["revoking"], source),',
        new="",
        setting=Setting(
            name="hosts, rescale", budget=Budget(rescales=1, crashes=1), records=1, parallelisms=(2,), hosts=("0", "1")
        ),
    ),
    Mutant(
        name="the state forgets which positions hosts retain",
        rule="rule 6, write ahead",
        where="coordinator.state_codec:_coordinator_from_json",
        old='retained=columns.decode_ids(data["retained"]),',
        new="",
        setting=Setting(name="blind twice", budget=Budget(crashes=1, blind=2), splits=1, retention=1e9),
    ),
    Mutant(
        name="the state forgets which readers know the end",
        rule="rule 6, write ahead",
        where="coordinator.state_codec:_coordinator_from_json",
        old='no_more_splits=frozenset(data["noMoreSplits"]),',
        new="",
        setting=Setting(name="once", budget=Budget(crashes=1), splits=1, records=1, is_periodic=False),
    ),
    Mutant(
        name="the state is stored with the epoch before",
        rule="rule 6, write ahead",
        where="coordinator.state_codec:_coordinator_from_json",
        old='epoch=int(data["epoch"]),',
        new='epoch=int(data["epoch"]) - 1,',
        setting=Setting(name="two crashes", budget=Budget(crashes=2), splits=1, records=1),
    ),
    Mutant(
        name="the state forgets which epoch addresses a host",
        rule="rule 6, write ahead",
        where="coordinator.state_codec:_host_from_json",
        old='addressed_epoch=int(data["addressedEpoch"])',
        new="addressed_epoch=0",
        setting=Setting(name="two crashes", budget=Budget(crashes=2), splits=1, records=1),
    ),
    Mutant(
        name="the state forgets incarnations",
        rule="rule 6, write ahead",
        where="coordinator.state_codec:_host_from_json",
        old='incarnation=int(data["incarnation"])',
        new="incarnation=0",
        setting=Setting(name="news", budget=Budget(crashes=1, old_news=1), splits=1),
    ),
    Mutant(
        name="the state has positions as assigned, not as reported",
        rule="rule 2, exactly once",
        where="coordinator.state_codec:_coordinator_to_json",
        old="state.positions(state.owners), {",
        new="{s: x.position for s, x in state.splits.items()}, {",
        setting=Setting(name="w", budget=Budget(crashes=1, wipes=1), splits=1),
        is_slow=True,
    ),
    Mutant(
        name="the state forgets finished splits",
        rule="liveness",
        where="connectors.discovery.source:DiscoveringSource.decode_state",
        old='finished=columns.decode_ids(data["finished"])',
        new="finished=frozenset()",
        setting=Setting(
            name="bounded", budget=Budget(crashes=1), splits=1, records=1, is_periodic=False, is_bounded=True
        ),
    ),
    Mutant(
        name="a logged offset is read without its starts",
        rule="contract",
        where="documents.stream_offset:from_json",
        old='starts=columns.decode_map(data["starts"])',
        new="starts={}",
        setting=Setting(name="two crashes", budget=Budget(crashes=2), splits=1, records=1),
    ),
    Mutant(
        name="a logged offset is read without topic ids",
        rule="rule 2, nothing lost",
        where="documents.stream_offset:from_json",
        old='attributes=columns.decode_map(data["attributes"]) if version > 1 else {}',
        new="attributes={}",
        setting=Setting(name="recreated", budget=Budget(crashes=1, recreations=1), splits=1, records=1, may_lose=True),
    ),
    Mutant(
        name="a driver takes assignments of a former lineage",
        rule="rule 10, fencing",
        where="host.machine:ReaderHost.on_assignment",
        old="assignment.lineage < self.lineage or",
        new="",
        setting=Setting(name="ol", budget=Budget(crashes=1, old_news=1, amnesia=1), splits=1, records=1),
    ),
    Mutant(
        name="a driver takes an older assignment for a newer one",
        rule="liveness",
        where="host.machine:ReaderHost.on_assignment",
        old="assignment.epoch <= self.assignment.epoch",
        new="False",
        setting=Setting(name="on", budget=Budget(rescales=1, old_news=1), records=1, parallelisms=(1, 2)),
    ),
    Mutant(
        name="a query ends before its last report is written",
        rule="liveness",
        where="balanced_source_spark.host_runtime:HostRuntime.is_finished",
        old="return is_said",
        new="return True",
        setting=Setting(
            name="bounded", budget=Budget(crashes=1), splits=1, records=1, is_periodic=False, is_bounded=True
        ),
    ),
    Mutant(
        name="an older copy of the state is trusted",
        rule="rule 10, fencing",
        where="coordinator.registration:is_outdated",
        old="    if published is None:",
        new="    return False\n    if published is None:",
        setting=Setting(name="restore", splits=1, records=1, budget=Budget(restores=1)),
    ),
    Mutant(
        name="the enumerator does not notice a recreated topic",
        rule="rule 2, nothing lost",
        where="connectors.discovery.enumerator:DiscoveringSplitEnumerator._is_former",
        old="told = {IDENTITY: identity}",
        new="told = {}",
        setting=Setting(name="recreated", budget=Budget(crashes=1, recreations=1), splits=1, records=1, may_lose=True),
    ),
    Mutant(
        name="positions of removed splits are not kept",
        rule="rule 2, exactly once",
        where="connectors.discovery.enumerator:DiscoveringSplitEnumerator._remove",
        old="gone, keep = frozenset(removed), self.source.retention > 0 and not forget",
        new="gone, keep = frozenset(removed), False",
        setting=Setting(name="blind twice", budget=Budget(blind=2), splits=1, retention=1e9),
    ),
    Mutant(
        name="a query ends before its readers know that there are no more splits",
        rule="liveness",
        where="host.finish:is_finished",
        old="not assignment.no_more_splits.issuperset(offset.readers)",
        new="False",
        setting=Setting(
            name="bounded", budget=Budget(crashes=1), splits=1, records=1, is_periodic=False, is_bounded=True
        ),
    ),
    Mutant(
        name="a rescale adds no readers",
        rule="rule 3, balanced",
        where="coordinator.coordinator:SourceCoordinator._on_parallelism",
        old="self._add_readers(range(before, parallelism))",
        new="pass",
        setting=Setting(name="rescale and crash", budget=Budget(rescales=1, crashes=1), records=1, parallelisms=(1, 2)),
        is_slow=True,
    ),
    Mutant(
        name="a failed discovery is not repeated",
        rule="liveness",
        where="connectors.discovery.enumerator:DiscoveringSplitEnumerator._scope_failed",
        old="self._ask(scope",
        new="(lambda *a, **k: None)(scope",
        setting=Setting(name="fault", budget=Budget(crashes=1, faults=1), splits=1, records=1),
    ),
)
"""Each is found by the search of its own setting."""
