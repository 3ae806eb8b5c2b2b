"""Reasons of the condition `Autoscaling`, in the order of `Reason`.

Each is a word, its kind, the cause and the remedy.
"""

from typing import Final

from balanced_source.reason_kinds import ReasonKind

WITHIN_BOUNDS: Final = (
    "WithinBounds",
    ReasonKind.AUTOSCALING,
    (
        "`parallelism` was below `minReaders` or above `maxReaders`, and is changed to the"
        " nearest bound."
    ),
)
MEASURING: Final = (
    "Measuring",
    ReasonKind.AUTOSCALING,
    "The load is being measured: the driver has just started, or splits have changed.",
)
WITHIN_TARGET: Final = (
    "WithinTarget",
    ReasonKind.AUTOSCALING,
    "The readers suffice for the load, and fewer would not.",
)
SCALED_UP: Final = (
    "ScaledUp",
    ReasonKind.AUTOSCALING,
    "More arrives than the readers can process at the target.",
)
SCALED_DOWN: Final = (
    "ScaledDown",
    ReasonKind.AUTOSCALING,
    "Fewer readers sufficed for `scaleDownDelay`.",
)
PROBING: Final = (
    "Probing",
    ReasonKind.AUTOSCALING,
    (
        "Readers have had no backlog for `scaleDownDelay`, so fewer are tried to measure their"
        " capacity."
    ),
)
SCALE_DOWN_DELAYED: Final = (
    "ScaleDownDelayed",
    ReasonKind.AUTOSCALING,
    "Fewer readers suffice, but not for long enough.",
)
CATCHING_UP: Final = (
    "CatchingUp",
    ReasonKind.AUTOSCALING,
    "The readers are working off a backlog fast enough.",
)
HELD_BACK: Final = (
    "HeldBack",
    ReasonKind.AUTOSCALING,
    (
        "Unread records wait for splits or sources that are further behind in event time, so"
        " another number of readers does not help."
    ),
)
SPLITS_UNEVEN: Final = (
    "SplitsUneven",
    ReasonKind.AUTOSCALING,
    (
        "Readers are added because splits differ in load, although fewer could carry a balanced"
        " load."
    ),
    "Use strategy `LoadAware`, or set `pipeline.maxRecordsPerReader`.",
)
HOT_SPLIT: Final = (
    "HotSplit",
    ReasonKind.AUTOSCALING,
    "One split gets more than one reader can process. More readers do not help.",
    (
        "Spread its keys over more splits, such as partitions, or set"
        " `pipeline.maxRecordsPerReader`."
    ),
)
DOWNSTREAM_LIMIT: Final = (
    "DownstreamLimit",
    ReasonKind.AUTOSCALING,
    (
        "The last increase hardly raised the throughput, or a limit keeps readers waiting: the"
        " readers are not the bottleneck."
    ),
    (
        "Check the sink, the transformation and the servers of the source, and the source's"
        " `limits` of a micro-batch."
    ),
)
AT_MAXIMUM: Final = (
    "AtMaximum",
    ReasonKind.AUTOSCALING,
    "The load needs more readers than `maxReaders`.",
    "Raise `maxReaders`.",
)
LAG_UNKNOWN: Final = (
    "LagUnknown",
    ReasonKind.AUTOSCALING,
    (
        "A driver does not report, or cannot reach its source. No readers are taken away; they are"
        " added as far as the other hosts need them."
    ),
    "See the condition `Ready`.",
)
NOT_MEASURABLE: Final = (
    "NotMeasurable",
    ReasonKind.AUTOSCALING,
    (
        "The source does not count unread records, or its readers ask for splits, so the load"
        " is unknown. The number of readers stays, within its bounds."
    ),
    "Remove `spec.autoscaling`, and set `parallelism`.",
)
REBALANCE_MANUAL: Final = (
    "RebalanceManual",
    ReasonKind.AUTOSCALING,
    "With `rebalance.mode: Manual`, added readers would get no splits. Their number stays.",
    "Use `OnRescale` or `Drift`, or remove `spec.autoscaling`.",
)
SCALING_REFUSED: Final = (
    "ScalingRefused",
    ReasonKind.AUTOSCALING,
    "The API server refused the change of `parallelism`.",
    (
        "For a missing right, grant `patch` on `balancedsources/scale`: install the roles of"
        " the Helm chart. Else change what the message names, such as an admission policy."
    ),
)
TWO_AUTOSCALERS: Final = (
    "TwoAutoscalers",
    ReasonKind.AUTOSCALING,
    "Another client keeps changing `parallelism`, and `spec.autoscaling` undoes it.",
    (
        "Delete the HorizontalPodAutoscaler or the ScaledObject of the source, leave"
        " `parallelism` out of applied manifests, or remove `spec.autoscaling`."
    ),
)
