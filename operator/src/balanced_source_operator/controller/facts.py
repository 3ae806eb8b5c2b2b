"""What the status is made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from balanced_source.api import Problem, SplitId
from balanced_source.coordinator import CoordinatorState
from balanced_source_operator.contract.half import NO_LOSSES, Losses
from balanced_source_operator.controller.autoscaling import Verdict
from balanced_source_operator.controller.decisions import Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the status is made from.

    Attributes:
        generation: of the resource.
        in_effect: generation of the spec that this operator has acted on last; None if it has acted
            on none yet.
        selector: label selector of the pods that are readers; see `reader_pods.reader_selector`.
        now: seconds since the epoch.
        state: the coordinator's; None while there is none.
        pending_splits: splits without an owner.
        undiscovered: scopes whose splits, or their start positions, are not known yet.
        is_first_look: whether not everything that the source reads has answered this operator yet.
        is_finished: whether a bounded source has been read to its end.
        discovery: errors of discovery by scope.
        problems: everything else that is wrong, as far as the operator has found it.
        losses: what the drivers have counted, in the words of the connector.
        left_out: splits on their way out whose part the spec leaves out; see `leaving.left_out`.
        application: what was decided about it; with several hosts, see `controller.hosts.combined`.
        hosts: what was decided about the application of each host.
        wanted_hosts: names of the hosts that the spec asks for.
        images: image of the application of each host, as far as it is known.
        silent_hosts: hosts that have not reported for so long that their lag is unknown.
        heard: host → heartbeat of its newest report as it was seen. While turns fail, it is newer
            than what the state has.
        starting: driver pods that have not reported yet, by host; see `Pulses.starting`.
        waiting_for: hosts that keep the recovery gate closed.
        is_silent: whether the driver has not reported for so long that its lag is unknown.
        is_overdue: whether readers have been waited for longer than the gate's deadline.
        last_valid: what is kept of the last valid spec; see `last_valid.kept_text`.
        settings: what is kept of healthy and failed settings; see `rollback.text_of`.
        is_paused: whether an annotation keeps changes of the spec from taking effect.
        verdict: newest decision of the autoscaler; None without `spec.autoscaling`.
        previous: the status as it is stored. Its numbers stay while the state is not known.
    """

    generation: int
    in_effect: int | None
    selector: str
    now: float
    state: CoordinatorState[Any] | None
    pending_splits: int
    undiscovered: Sequence[str] = ()
    is_first_look: bool = False
    is_finished: bool
    discovery: Mapping[str, Exception]
    problems: Sequence[Problem]
    losses: Losses = NO_LOSSES
    left_out: Mapping[SplitId, str] = field(default_factory=dict)
    application: Decision
    hosts: Mapping[str, Decision] = field(default_factory=dict)
    wanted_hosts: Sequence[str] = ()
    images: Mapping[str, str] = field(default_factory=dict)
    silent_hosts: frozenset[str] = frozenset()
    heard: Mapping[str, float] = field(default_factory=dict)
    starting: Mapping[str, str] = field(default_factory=dict)
    waiting_for: Sequence[str]
    is_silent: bool
    is_overdue: bool
    last_valid: str
    settings: str = ""
    is_paused: bool = False
    verdict: Verdict | None = None
    previous: Mapping[str, Any]
