"""Seeded bugs of several hosts whose state is lost or restored.

Too deep for a search, random lives find them.
"""

from dataclasses import replace
from typing import Final

from proof.closures import LIVES
from proof.mutation import Mutant

_LIVES: Final = {setting.name: setting for setting in LIVES}
_LOST: Final = _LIVES["two hosts and lost state"]
_RESTORED: Final = _LIVES["two hosts and restored state"]
_COMING: Final = replace(_LIVES["hosts that come and go"], has_executors=False)
_SKIPPING: Final = replace(
    _COMING,
    name="hosts of which one in the middle comes late",
    host_sets=(("0",), ("0", "2"), ("0", "1", "2")),
)
_COMING_LOST: Final = _LIVES["hosts that come and go, and lost state"]
_GIVEN_UP: Final = _LIVES["hosts that are lost"]
_COMING_RESTORED: Final = _LIVES["hosts that come and go, and restored state"]

BETWEEN_HOSTS: Final = (
    Mutant(
        name="a host forgets a position before the split's next host has it",
        rule="rule 2, exactly once",
        where="host.adoption:_kept",
        old="assignment.retained.union(assignment.since)",
        new="assignment.retained",
        setting=_LOST,
        lives=300,
    ),
    Mutant(
        name="a rebuilt state keeps its guess of who reads a split",
        rule="rule 4, sticky",
        where="coordinator.recovery:_with_first_words",
        old="if held else state",
        new="if False else state",
        setting=_LOST,
        lives=100,
    ),
    Mutant(
        name="an older copy of the state still counts hosts as known",
        rule="rule 2, exactly once",
        where="coordinator.registration:started_over",
        old="HostState(phase=HOST.after(h.phase, HostEvent.FORGOTTEN))",
        new="HostState(phase=HOST.after(h.phase, HostEvent.FORGOTTEN), known_from=h.known_from)",
        setting=_RESTORED,
        lives=100,
    ),
)
"""What a lost or restored state breaks when a split is, or was, between two hosts."""

COMING_AND_GOING: Final = (
    # With a lost state this bug breaks nothing any more: the checkpoints of others name the host.
    Mutant(
        name="a host leaves before others have taken over its splits",
        rule="rule 4, sticky",
        where="coordinator.membership:_has_let_go",
        old="not host.report.positions and uncovered.isdisjoint(host.report.retained)",
        new="not host.report.positions",
        setting=_COMING,
        lives=400,
    ),
    Mutant(
        name="a pending split remembers the former number of its reader",
        rule="rule 4, sticky",
        where="coordinator.coordinator:SourceCoordinator._set_hosts",
        old="self.enumerator.handle_renumbered(numbers)",
        new="pass",
        setting=_COMING,
        lives=100,
    ),
    Mutant(
        name="a gate does not wait for a host that leaves and was never heard",
        rule="rule 7, gate",
        where="coordinator.recovery:_may_be_missed",
        old="host.is_on_its_way_out and not host.known_from",
        new="False",
        setting=_COMING_RESTORED,
        lives=100,
    ),
    Mutant(
        name="with the state, hosts are forgotten that were on their way out",
        rule="rule 2, exactly once",
        where="coordinator.coordinator:SourceCoordinator.__init__",
        old="if isinstance(published, Assignment):",
        new="if False:",
        setting=_COMING_LOST,
        lives=800,
    ),
    Mutant(
        name="hosts are kept in the order in which they came",
        rule="liveness",
        where="coordinator.membership:with_wanted",
        old="return in_host_order(hosts)",
        new="return hosts",
        setting=_SKIPPING,
        lives=60,
    ),
    Mutant(
        name="readers are numbered as if nobody had come or gone",
        rule="rule",
        where="coordinator.membership:_renumbered",
        old="owners={s: numbers[o] for s, o in state.owners.items()}",
        new="owners=dict(state.owners)",
        setting=_COMING,
        lives=100,
    ),
    Mutant(
        name="an acknowledgement covers only what its readers of today were given",
        rule="liveness",
        where="coordinator.coordinator:SourceCoordinator._acknowledge",
        old="state.is_held_by(name)",
        new=(
            "lambda split_id: state.tracker.uncovered_since(0).get(split_id) in"
            " state.subtasks_of(name)"
        ),
        setting=_COMING_RESTORED,
        lives=100,
    ),
)
"""What goes wrong when hosts are added and removed."""

GIVEN_UP: Final = (
    Mutant(
        name="others read on before the lost host's next attempt tells where",
        rule="rule 2, exactly once",
        where="coordinator.coordinator:SourceCoordinator._on_given_up",
        old="if event.accepts_duplicates and host.phase",
        new="if host.phase",
        setting=_GIVEN_UP,
        lives=100,
    ),
    Mutant(
        name="a registration releases splits before the log has taken an entry without them",
        rule="rule 2, exactly once",
        where="coordinator.recovery:recover",
        old="strangers = {n: r for n, r in reports.items() if not state.hosts[n].known_from}",
        new="strangers = reports",
        setting=_GIVEN_UP,
        lives=1000,
    ),
    Mutant(
        name="a host that is given up is forgotten before it has let go",
        rule="rule",
        where="coordinator.membership:followed",
        old="host.is_on_its_way_out and _has_let_go(state, name, uncovered)",
        new=(
            "host.role is HostRole.DRAINING or (host.is_on_its_way_out and _has_let_go(state, name,"
            " uncovered))"
        ),
        setting=_GIVEN_UP,
        lives=100,
    ),
    Mutant(
        name="a host that is given up never leaves",
        rule="liveness",
        where="coordinator.membership:followed",
        old="host.is_on_its_way_out and",
        new="host.role is HostRole.LEAVING and",
        setting=_GIVEN_UP,
        lives=200,
    ),
)
"""What goes wrong when the splits of a lost host go to others."""
