"""The pure part of a reader host: adopting assignments, planning micro-batches, reporting."""

from balanced_source.host.adoption import adopt, go_on, readers_on
from balanced_source.host.finish import is_finished
from balanced_source.host.machine import ReaderHost, handed_on
from balanced_source.host.planning import ReaderPlan, plan
from balanced_source.host.ranges import SplitRange
from balanced_source.lifecycles import IncarnationPhase as Phase

__all__ = [
    "Phase",
    "ReaderHost",
    "ReaderPlan",
    "SplitRange",
    "adopt",
    "go_on",
    "handed_on",
    "is_finished",
    "plan",
    "readers_on",
]
