"""Splits of parts that the spec leaves out, and that a micro-batch may still read.

A host acknowledges an epoch when Spark plans the first micro-batch with it. Spark does so when the
micro-batch before is committed, and a restart repeats none but the newest. So from then on no
micro-batch of the host names a split that the epoch is without, and nothing else has to be
reported.
"""

from collections.abc import Mapping
from typing import Any, Final

from balanced_source.api import Problem, Source, SplitId
from balanced_source.coordinator import CoordinatorState
from balanced_source.documents.storage import in_host_order
from balanced_source.names import counted, first_of
from balanced_source.reasons import Reason
from balanced_source_adapters.mistakes import expect
from balanced_source_operator.contract.blame import blamed
from balanced_source_operator.contract.half import half_of
from balanced_source_operator.controller.facts import Facts
from balanced_source_operator.controller.hosts import hosts_done

_NAMED: Final = 3
"""Parts, and hosts, that a message names."""


def left_out(source: Source[Any, Any], state: CoordinatorState[Any]) -> Mapping[SplitId, str]:
    """Return the splits that hosts have to let go of because the spec leaves out their part.

    Split → what messages call that part; see `OperatorHalf.left_out`.

    Raises:
        ConnectorError: the connector of the source cannot be used, or fails.
    """
    # Splits with an owner move. Of the others, some are only read to their end, or deleted.
    leaving = state.revoking.keys() - state.owners.keys()
    if not leaving:
        return {}
    with blamed(source.kind, "the splits that leave it"):
        half = half_of(source.kind)
        parts: dict[SplitId, object] = {s: half.left_out(source, s) for s in leaving}
        for part in parts.values():
            expect(part, str, "a text", who="left_out")
    return {s: str(part) for s, part in parts.items() if part}


def leaving(facts: Facts) -> Problem | None:
    """Return which parts may still be read, and what their end waits for; None if there are none.

    A host that has ended with nothing left to read has committed all of its micro-batches.
    """
    state = facts.state
    if state is None:
        return None
    done = hosts_done(facts.hosts)
    found = {s: r for s in facts.left_out if (r := state.revoking.get(s)) and r.host not in done}
    if not found:
        return None
    parts = sorted({facts.left_out[s] for s in found})
    hosts = list(in_host_order(dict.fromkeys(r.host for r in found.values())))
    epoch = max(r.epoch for r in found.values())
    message = (
        f"{first_of(parts, _NAMED)} may still be read: {_awaited(hosts, state)}, and adopts epoch"
        f" {epoch} with the next one ({counted(len(found), 'split')})"
    )
    return Problem(reason=Reason.SPLITS_LEAVING, message=message)


def _awaited(hosts: list[str], state: CoordinatorState[Any]) -> str:
    if len(state.hosts) == 1:
        return "the driver finishes its micro-batch first"
    who = f"host {hosts[0]}" if len(hosts) == 1 else f"each of the hosts {first_of(hosts, _NAMED)}"
    return f"{who} finishes its micro-batch first"
