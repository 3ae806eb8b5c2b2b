"""Chooses the number of readers from what they report.

Samples in, verdicts out, no clock and no I/O.

The estimate is that of DS2 (Kalavri et al., OSDI 2018) and of Flink's autoscaler: the load divided
by what one reader can process when it never waits. Micro-batches make the time in which a reader
waits invisible, so that rate is measured while there is a backlog (Flink calls this the observed
true processing rate). A rescale costs no restart here, so no restart time is part of the target,
and the decision is taken in seconds.
"""

from balanced_source_operator.controller.autoscaling.decision import carried_out, decide, weigh
from balanced_source_operator.controller.autoscaling.learning import observe
from balanced_source_operator.controller.autoscaling.memory import AutoscalerMemory
from balanced_source_operator.controller.autoscaling.policy import Policy
from balanced_source_operator.controller.autoscaling.rivalry import Rivalry
from balanced_source_operator.controller.autoscaling.samples import BatchTimes, Sample
from balanced_source_operator.controller.autoscaling.verdict import Verdict

__all__ = [
    "AutoscalerMemory",
    "BatchTimes",
    "Policy",
    "Rivalry",
    "Sample",
    "Verdict",
    "carried_out",
    "decide",
    "observe",
    "weigh",
]
