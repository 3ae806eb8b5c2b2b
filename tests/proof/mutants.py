"""Bugs that the explorer must find.

The defects X1 to X11 of other systems, and each rule of the protocol broken.

X1, X2 and X3 are about owners that are derived from a count; X4 about reports lost in a snapshot;
X5 about reports that beat newer ownership; X6 about overlapping discoveries; X7 and X8 about the
end of bounded sources; X9 about hashing; X10 about removed splits; X11 about a reader that comes
back with nothing. The numbers are those of docs/scenarios.md.
"""

from typing import Final

from proof.host_mutants import BETWEEN_HOSTS, COMING_AND_GOING, GIVEN_UP
from proof.more_mutants import MORE
from proof.mutation import Mutant
from proof.values import Budget, Setting

_ENUMERATOR: Final = "connectors.discovery.enumerator:DiscoveringSplitEnumerator"
_COORDINATOR: Final = "coordinator.coordinator:SourceCoordinator"

_START: Final = Setting(name="start", splits=3, parallelism=2, records=1)
_RESCALE: Final = Setting(
    name="rescale", splits=4, parallelism=2, records=1, budget=Budget(rescales=1)
)
_SHRINK: Final = Setting(
    name="shrink", splits=4, parallelism=2, records=1, budget=Budget(shrinks=1, growths=1)
)
_CRASH: Final = Setting(name="crash", parallelism=2, records=1, budget=Budget(crashes=1))
_BOUNDED: Final = Setting(name="bounded", records=1, budget=Budget(crashes=2), is_periodic=False)
_HOSTS: Final = Setting(
    name="hosts",
    hosts=("0", "1"),
    parallelism=1,
    parallelisms=(2,),
    splits=2,
    budget=Budget(rescales=1),
)
_HOSTS_BEFORE: Final = Setting(
    name="hosts before the operator",
    hosts=("0", "1"),
    parallelism=2,
    splits=1,
    records=1,
    budget=Budget(crashes=1),
    are_drivers_early=True,
)
_ZOMBIE: Final = Setting(name="zombie", records=1, splits=1, budget=Budget(zombies=1))
_WIPE: Final = Setting(name="lost checkpoint", splits=1, records=2, budget=Budget(wipes=1))
_BLIND: Final = Setting(name="blind", splits=1, records=1, budget=Budget(blind=1, rescales=1))

_FIRST: Final = (
    Mutant(
        name="all new splits go to one reader",
        rule="rule 3, balanced",
        repeats=("X1",),
        where="assigners._round_robin:deal",
        old="(load + 1, subtask)",
        new="(load, subtask)",
        setting=_START,
    ),
    Mutant(
        name="splits of readers that are no more go to one reader",
        rule="rule 3, balanced",
        repeats=("X2",),
        where=f"{_ENUMERATOR}._place",
        old="if (o := state.preferred.get(s, n)) < n}",
        new="if (o := state.preferred.get(s, n) % n) >= 0}; may_move = False",
        setting=_RESCALE,
    ),
    Mutant(
        name="the next owner follows a count",
        rule="rule 3, balanced",
        repeats=("X3",),
        where="assigners._round_robin:deal",
        old="load, subtask = heap[0]",
        new="load, subtask = 0, (sum(loads) + len(owners)) % len(loads)",
        setting=_SHRINK,
    ),
    Mutant(
        name="a snapshot forgets reports that wait behind the gate",
        rule="rule 7, gate",
        repeats=("X4",),
        where="coordinator.state_codec:_host_to_json",
        old="host.phase in (HostPhase.RECOVERING, HostPhase.LOST)",
        new="False",
        setting=_HOSTS_BEFORE,
    ),
    Mutant(
        name="a report gives splits back to their former reader",
        rule="rule 4, sticky",
        repeats=("X5",),
        where="coordinator.recovery:_activate",
        old="        hosts=hosts,",
        new=(
            "        hosts=hosts,\n"
            "        owners={**state.owners, **{s: o for r in reports.values()"
            " for s, o in r.owners.items() if s in state.owners and o < state.parallelism}},"
        ),
        setting=Setting(
            name="hosts, rescale and crash",
            hosts=("0", "1"),
            parallelisms=(2,),
            records=1,
            budget=Budget(rescales=1, crashes=1),
        ),
        is_slow=True,
    ),
    Mutant(
        name="a look-up under way is started again, and its answer always counts",
        rule="contract",
        repeats=("X6",),
        where=f"{_ENUMERATOR}.add_readers",
        old="self._void_look_ups(scopes_held(readers, self.source))",
        new="pass",
        setting=Setting(
            name="lost state", records=1, splits=1, budget=Budget(amnesia=1, crashes=1)
        ),
    ),
    Mutant(
        name="a restored bounded source never ends",
        rule="liveness",
        repeats=("X7",),
        where=f"{_ENUMERATOR}._assign",
        old="if self._is_complete():",
        new="if pending and self._is_complete():",
        setting=_BOUNDED,
    ),
    Mutant(
        name="no more splits is said again and again",
        rule="an epoch for nothing",
        repeats=("X8",),
        where="coordinator.context:CoordinatorContext.signal_no_more_splits",
        old="if subtask_id not in self.state.no_more_splits:",
        new="if True:",
        setting=_BOUNDED,
    ),
    Mutant(
        name="owners by hash where balance was promised",
        rule="rule 3, balanced",
        repeats=("X9",),
        where="assigners._round_robin:deal",
        old="owners[split_id] = subtask",
        new="owners[split_id] = len(str(split_id[1])) * 31 % len(loads)",
        setting=_START,
    ),
    Mutant(
        name="a removed split is read for ever",
        rule="liveness",
        repeats=("X10",),
        where=f"{_ENUMERATOR}._find_removed",
        old="if count >= CONFIRMATIONS}",
        new="if count < 0}",
        setting=Setting(name="only shrink", records=1, budget=Budget(shrinks=1)),
    ),
    Mutant(
        name="a reader that lost its checkpoint starts where it was assigned",
        rule="rule 2, exactly once",
        repeats=("X11",),
        where="coordinator.registration:absorbed",
        old="if report is None:",
        new="if True:",
        setting=_WIPE,
    ),
    Mutant(
        name="a split moves to another host before its holder let go of it",
        rule="rule 2, exactly once",
        where="coordinator.context:CoordinatorContext._holder",
        old="host = self.state.holder_of(split_id)",
        new="return None",
        setting=_HOSTS,
    ),
    Mutant(
        name="a split goes on where the operator last saw it, not where its holder let go",
        rule="rule 2, exactly once",
        where="coordinator.revocations:let_go",
        old="r.split.at(_final_position(",
        new="r.split or r.split.at(_final_position(",
        setting=_HOSTS,
        is_slow=True,
    ),
    Mutant(
        name="adopting takes the assignment's positions, not the reader's",
        rule="rule 2, exactly once",
        where="host.adoption:_goes_on",
        old="split_id in offset.positions and",
        new="split_id in offset.positions and split_id not in assignment.starts and",
        setting=Setting(
            name="rescale of one split", splits=1, records=2, budget=Budget(rescales=1)
        ),
    ),
    Mutant(
        name="a rescale moves nothing",
        rule="rule 3, balanced",
        where=f"{_ENUMERATOR}._assign",
        old="may_move = self.state.rebalance_due and",
        new="may_move = False and",
        setting=_RESCALE,
    ),
    Mutant(
        name="the larger shares go to the first readers, not to the fullest",
        rule="rule 4, sticky",
        where="assigners._round_robin:balanced_quotas",
        old="key=lambda i: (-loads[i], i)",
        new="key=lambda i: i",
        setting=Setting(
            name="one more",
            splits=3,
            records=1,
            parallelism=2,
            budget=Budget(shrinks=1, rescales=1),
        ),
    ),
    Mutant(
        name="every discovery may move splits",
        rule="rule 4, sticky",
        where=f"{_ENUMERATOR}._scope_listed",
        old="unsure = self._find_removed",
        new="self.state = replace(self.state, rebalance_due=True); unsure = self._find_removed",
        setting=_SHRINK,
    ),
    Mutant(
        name="which splits move depends on the order of a mapping",
        rule="rule 5, deterministic",
        where="assigners._round_robin:_pick_surplus",
        old="ordered = sorted(owners)",
        new="ordered = list(owners)",
        setting=_RESCALE,
    ),
    Mutant(
        name="publish first, store later",
        rule="rule 6, write ahead",
        where=f"{_COORDINATOR}._settle",
        old="[PersistState(self.checkpoint()), PublishAssignment(self.assignment)]",
        new="[PublishAssignment(self.assignment), PersistState(self.checkpoint())]",
        setting=_START,
    ),
    Mutant(
        name="a restarted operator does not publish again",
        rule="liveness",
        where=f"{_COORDINATOR}.start",
        old="if self._is_restored and state.epoch and",
        new="if False and",
        setting=_CRASH,
    ),
    Mutant(
        name="the state forgets which splits nobody has adopted yet",
        rule="rule 6, write ahead",
        where="coordinator.state_codec:_coordinator_from_json",
        old='for epoch, owned in data["uncovered"]',
        new="for epoch, owned in []",
        setting=_CRASH,
    ),
    Mutant(
        name="the gate is always open",
        rule="rule 7, gate",
        where="coordinator.recovery:waiting_for",
        old="if not is_at_gate(state)",
        new="if True or not is_at_gate(state)",
        setting=_HOSTS_BEFORE,
    ),
    Mutant(
        name="splits are assigned before the first discovery",
        rule="rule 7, gate",
        where=f"{_ENUMERATOR}._is_confirmed",
        old=" and self.source.scope_of(split_id) in self.transient.answered",
        new="",
        setting=Setting(
            name="growth and crashes", splits=1, records=1, budget=Budget(growths=1, crashes=2)
        ),
        is_slow=True,
    ),
    Mutant(
        name="one blind discovery removes splits",
        rule="rule 2, exactly once",
        where=f"{_ENUMERATOR}._find_removed",
        old="if count >= CONFIRMATIONS}",
        new="if count >= 1}",
        setting=_BLIND,
        is_slow=True,
    ),
    Mutant(
        name="an offset does not say where new splits start",
        rule="contract",
        where="host.adoption:adopt",
        old="starts=fresh,",
        new="starts={},",
        setting=_START,
    ),
    Mutant(
        name="only readers that have work get a task",
        rule="rule 9, pure planning",
        where="host.planning:plan",
        old="for reader in end.readers",
        new="for reader in sorted(shares)",
        setting=Setting(name="more readers than splits", splits=1, parallelism=2),
    ),
    Mutant(
        name="reports of an older incarnation count",
        rule="rule 10, fencing",
        where=f"{_COORDINATOR}._on_report",
        old="or report.incarnation < max(1, host.incarnation)",
        new="or report.incarnation < 1",
        setting=Setting(
            name="old report", records=1, splits=1, budget=Budget(crashes=1, old_news=1)
        ),
    ),
    Mutant(
        name="a driver takes assignments for another incarnation",
        rule="rule 10, fencing",
        where="host.machine:ReaderHost.on_assignment",
        old="is_old or addressed < self.incarnation",
        new="is_old",
        setting=_CRASH,
    ),
    Mutant(
        name="a driver is not fenced by a newer one",
        rule="rule 10, fencing",
        where="host.machine:ReaderHost.on_assignment",
        old="if addressed > self.incarnation:",
        new="if False:",
        setting=_ZOMBIE,
    ),
    Mutant(
        name="an acknowledgement is not looked at",
        rule="liveness",
        where=f"{_COORDINATOR}._progress",
        old="self._release(report)",
        new="pass",
        setting=Setting(
            name="small hosts",
            hosts=("0", "1"),
            parallelisms=(2,),
            records=1,
            budget=Budget(rescales=1),
        ),
        is_slow=True,
    ),
)

MUTANTS: Final = (*_FIRST, *MORE, *BETWEEN_HOSTS, *COMING_AND_GOING, *GIVEN_UP)
"""Each is found by the search, or the random lives, of its own setting."""
