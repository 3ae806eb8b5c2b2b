"""Seeded bugs of several hosts whose state is lost or restored: too deep for a search, random lives find them."""

from typing import Final

from proof.closures import LIVES
from proof.mutation import Mutant

_LIVES: Final = {setting.name: setting for setting in LIVES}
_LOST: Final = _LIVES["two hosts and lost state"]
_RESTORED: Final = _LIVES["two hosts and restored state"]

BETWEEN_HOSTS: Final = (
    Mutant(
        name="a host forgets a position before the split's next host has it",
        rule="rule 2, exactly once",
        where="host.adoption:_kept",
        old="assignment.retained.union(assignment.since)",
        new="assignment.retained",
        setting=_LOST,
        lives=100,
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
